"""Topics: durable, ordered logs of rows between operators, with one writer and many readers.

Start with `embedded.topic.Topic`; `embedded.writer.TopicWriter` appends rows, `embedded.check`
finds damage.
"""
