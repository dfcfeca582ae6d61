"""CEL as the API server and the scheduler evaluate it: syntax tree, values, functions, evaluation.

Parsing and type checking are the engine's, behind `devices.dra.selector`; here is what cel-go does
with a checked tree, so that errors, equality and cost come out as Kubernetes has them.
"""
