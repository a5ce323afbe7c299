"""How batches of the service follow each other on Spark, unless options say otherwise."""

#: Planned seconds of a batch. A batch has what waits, so this matters with a backlog only: few long
#: batches cost less than many short ones.
BATCH_S = 2.0
#: The share of the machine that batches may take beside their rows. A publication passes three
#: operators, so short intervals count three times.
OVERHEAD_SHARE = 0.5
