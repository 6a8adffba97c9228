"""The Functions of torch_harmonics, with what their code suggests of the arguments.

Copy this file, correct the copy, and run check on it: the next check of torch_harmonics writes this file anew.
"""

from autograd_conformance import Declaration

from torch_harmonics.distributed.primitives import (
    _CopyToAzimuthRegion,
    _CopyToPolarRegion,
    _DistributeTransposeAzimuth,
    _DistributeTransposePolar,
    _GatherFromCopyToPolarRegion,
    _GatherFromPolarRegion,
    _PolarHaloExchangeFn,
    _PolarHaloReduceFn,
    _ReduceFromAzimuthRegion,
    _ReduceFromPolarRegion,
    _ReduceFromScatterToAzimuthRegion,
    _ReduceFromScatterToPolarRegion,
    _ScatterToPolarRegion,
)
from torch_harmonics.utils import _EnsureContiguous

# torch_harmonics.utils:_EnsureContiguous.
_ensure_contiguous = Declaration(
    _EnsureContiguous,
    "float[...]",
)

# torch_harmonics.distributed.primitives:_DistributeTransposeAzimuth.
_distribute_transpose_azimuth = Declaration(
    _DistributeTransposeAzimuth,
    "float[...]",
    "-1",
    "1 | 2",
)

# torch_harmonics.distributed.primitives:_DistributeTransposePolar.
_distribute_transpose_polar = Declaration(
    _DistributeTransposePolar,
    "float[...]",
    "-1",
    "1 | 2",
)

# torch_harmonics.distributed.primitives:_CopyToPolarRegion.
_copy_to_polar_region = Declaration(
    _CopyToPolarRegion,
    "float[...]",
)

# torch_harmonics.distributed.primitives:_CopyToAzimuthRegion.
_copy_to_azimuth_region = Declaration(
    _CopyToAzimuthRegion,
    "float[...]",
)

# torch_harmonics.distributed.primitives:_ScatterToPolarRegion.
_scatter_to_polar_region = Declaration(
    _ScatterToPolarRegion,
    "float[...]",
    "1 | 2",
)

# torch_harmonics.distributed.primitives:_GatherFromPolarRegion.
_gather_from_polar_region = Declaration(
    _GatherFromPolarRegion,
    "float[...]",
    "1 | 2",
    "1 | 2",
)

# torch_harmonics.distributed.primitives:_ReduceFromPolarRegion.
_reduce_from_polar_region = Declaration(
    _ReduceFromPolarRegion,
    "float[...]",
)

# torch_harmonics.distributed.primitives:_ReduceFromAzimuthRegion.
_reduce_from_azimuth_region = Declaration(
    _ReduceFromAzimuthRegion,
    "float[...]",
)

# torch_harmonics.distributed.primitives:_ReduceFromScatterToPolarRegion.
_reduce_from_scatter_to_polar_region = Declaration(
    _ReduceFromScatterToPolarRegion,
    "float[...]",
    "1 | 2",
)

# torch_harmonics.distributed.primitives:_ReduceFromScatterToAzimuthRegion.
_reduce_from_scatter_to_azimuth_region = Declaration(
    _ReduceFromScatterToAzimuthRegion,
    "float[...]",
    "1 | 2",
)

# torch_harmonics.distributed.primitives:_GatherFromCopyToPolarRegion.
_gather_from_copy_to_polar_region = Declaration(
    _GatherFromCopyToPolarRegion,
    "float[...]",
    "1 | 2",
    "1 | 2",
)

# torch_harmonics.distributed.primitives:_PolarHaloExchangeFn.
_polar_halo_exchange_fn = Declaration(
    _PolarHaloExchangeFn,
    "float[n,m,k]",
    "1 | 2",
)

# torch_harmonics.distributed.primitives:_PolarHaloReduceFn.
_polar_halo_reduce_fn = Declaration(
    _PolarHaloReduceFn,
    "float[...]",
    "1 | 2",
    "1 | 2",
)
