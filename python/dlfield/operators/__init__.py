"""Bound stencils as operators of PyTorch and JAX, with derivatives.

Its files, each of which uses only those above it::

    arguments          arrays and numbers of any framework, as a stencil takes them
    function           a stencil as a function of arrays that all have the same halo
    adjoints           the convention of adjoints: cotangents, gradients, what is saved
    tangents           the convention of tangents
    torch_functions    derivatives and batches, as PyTorch wants them
    torch_operators    what is registered with PyTorch
    in_torch           `TorchOp`: the callable, which chooses among these
    xla_entries        functions that XLA calls by name, with arrays over its memory
    linear             a linear function with its transpose, for JAX
    in_jax             `JaxCall`: derivatives as JAX wants them
    entrances          `torch_op` and `jax_call`
"""
