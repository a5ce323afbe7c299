"""The Spark application itself: session, JVM, executors, Python workers."""
