"""Demo pipelines: the applications of the papers, with generated records.

Each module has `build`, whose arguments can be set for a run (`--set service_s=0.2`), and
`PIPELINE`, built with the defaults; `NEEDS` names optional packages without which it cannot run.
Operators have the same names as in the simulated pipeline of the same name, so that both can be
compared.
"""
