"""The classes of PyTorch's operators: which of them multiply matrices.

``classify`` decides from an operator's schema. Products that ``vitruvian.torch.arithmetic`` does
not replace are refused at the level of these operators, where every way to call them ends; so are
operators that nobody has classified.
"""

# PyTorch is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

import re
from functools import cache
from typing import Any

import torch
from torch import Tensor

#: Namespaces of operators without products: primitives, annotations, sums over processes.
_PLAIN = (
    *("prim", "prims", "rngprims", "profiler", "c10d", "_c10d_functional"),
    "_c10d_functional_autograd",
)

#: Beginnings of operators that multiply a tensor by itself or by a matrix that they compute.
_ALONE = ("linalg_", "_linalg_", "cholesky", "geqrf", "affine_grid", "cudnn_affine_grid")

#: Operators that PyTorch composes of others, and which nevertheless compute products, by themselves
#: or as elementwise products and a sum.
_WHOLE = re.compile(
    r"fbgemm_linear_.*(weight|activation)$|quantized_.*_cell$|_wrapped_.*linear_|linalg_vecdot$"
)

#: Words in the names of products. They decide nothing but the reason of a refusal.
_PRODUCTS = re.compile(
    r"mm|mv|matmul|dot|addr|conv|linear|attention|sdp|qkv|transformer|rnn|gru|lstm|embedding_bag"
    r"|linalg|cholesky|solve|qr|cdist|euclidean|affine_grid|combination|multi_head"
)

#: Operators with several tensors that only move, select, compare, sum or normalise elements, or
#: multiply element by element. A name stands for its forms in place and backward, for those that
#: copy and for those on lists of tensors. Read one by one; all others of several tensors are
#: products, or unknown.
_ELEMENTWISE = frozenset(
    """
    linalg__powsum linalg_vector_norm
    __irshift__ __lshift__ __rshift__ _add_relu add sub mul div rsub pow copysign floor_divide
    eq ne lt le gt ge gcd lcm heaviside remainder xlogy complex polar where fill normal maximum
    minimum isin is_same_size is_set_to allclose dist masked_fill lerp addcmul addcdiv clamp_min
    clamp_max bitwise_and bitwise_or bitwise_xor
    _amp_foreach_non_finite_check_and_unscale zero _amp_update_scale
    _fused_adagrad _fused_adam _fused_adamw _fused_sgd _masked_scale _functional_assert_async
    elu gelu glu glu_backward_jvp glu_jvp hardshrink hardsigmoid hardswish hardtanh leaky_relu
    log_sigmoid rrelu_with_noise rrelu_with_noise_functional softplus softshrink threshold
    _prelu_kernel native_dropout _softmax _log_softmax _masked_softmax _sparse_softmax
    _sparse_log_softmax _nested_tensor_softmax_with_shape
    binary_cross_entropy binary_cross_entropy_with_logits huber_loss mse_loss smooth_l1_loss
    soft_margin_loss multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward
    nll_loss nll_loss_forward nll_loss2d nll_loss2d_forward _ctc_loss _cudnn_ctc_loss
    miopen_ctc_loss _use_cudnn_ctc_loss _use_miopen_ctc_loss
    _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool2d adaptive_avg_pool3d
    adaptive_max_pool2d adaptive_max_pool3d avg_pool2d avg_pool3d fractional_max_pool2d
    fractional_max_pool3d max_pool2d max_pool2d_with_indices max_pool3d_with_indices max_unpool2d
    max_unpool3d mkldnn_adaptive_avg_pool2d mkldnn_max_pool2d mkldnn_max_pool3d
    reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d
    replication_pad3d grid_sampler_2d grid_sampler_3d _grid_sampler_2d_cpu_fallback
    cudnn_grid_sampler
    _batch_norm_no_update _batch_norm_with_update _batch_norm_with_update_functional batch_norm
    batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt
    batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_update_stats
    cudnn_batch_norm miopen_batch_norm native_batch_norm _native_batch_norm_legit
    _native_batch_norm_legit_functional _native_batch_norm_legit_no_training native_group_norm
    native_layer_norm quantized_batch_norm _fused_rms_norm _weight_norm_interface norm powsum
    embedding embedding_dense embedding_renorm gather index index_add index_copy index_fill
    index_put _index_put_impl index_reduce index_select _unsafe_index _unsafe_index_put
    _unsafe_masked_index _unsafe_masked_index_put_accumulate masked_scatter masked_select put take
    scatter scatter_add scatter_reduce searchsorted bucketize segment_reduce _segment_reduce
    as_strided_scatter diagonal_scatter select_scatter slice_scatter _cummax_helper _cummin_helper
    bincount histogram _histogramdd_bin_edges _histogramdd_from_bin_cts
    _histogramdd_from_bin_tensors
    block_diag cat stack _stack _chunk_cat copy copy_sparse_to_sparse _copy_from
    _copy_from_and_resize resize_as resize_as_sparse set _has_same_storage_numel shallow_copy_data
    _new_zeros_with_same_feature_meta linspace logspace lu_unpack
    bernoulli binomial randint_like _dirichlet_grad _standard_gamma_grad _philox_normal
    _philox_uniform _philox_key_fold_in
    _convert_indices_from_csr_to_coo _validate_compressed_sparse_indices sparse_compressed_tensor
    _sparse_coo_tensor_with_dims_and_tensors sparse_mask _sparse_mask_projection _sparse_sum
    _spdiags _sparse_semi_structured_apply _sparse_semi_structured_apply_dense
    _pack_padded_sequence _jagged_to_padded_dense_forward _padded_dense_to_jagged_forward
    _nested_from_padded _nested_from_padded_and_nested_example _nested_from_padded_tensor
    _nested_select _nested_sum _nested_tensor_from_mask _nested_tensor_from_mask_left_aligned
    _nested_tensor_from_tensor_list _pdist _test_functorch_fallback
    _fused_sdp_choice _dyn_quant_pack_4bit_weight
    quantize_per_channel quantize_per_tensor _make_per_channel_quantized_tensor
    _empty_per_channel_affine_quantized dequantize
    fake_quantize_per_channel_affine_cachemask
    _fake_quantize_learnable_per_channel_affine _fake_quantize_learnable_per_tensor_affine
    _fake_quantize_per_tensor_affine_cachemask_tensor_qparams _fused_moving_avg_obs_fq_helper
    _fused_moving_avg_obs_fq_helper_functional
    """.split()
)

#: What a class of ``classify`` means.
MEANINGS = {
    "replaced": "the operator of this project",
    "parts": "it consists of other operators, which are classified",
    "view": "it returns a view, or a copy that a view would be",
    "pointwise": "PyTorch marks it, or another form of it, as pointwise",
    "constant": "it has no tensor as an operand",
    "alone": "it has one tensor as an operand, and is not of linear algebra",
    "reviewed": "it has several tensors, and was read: it does not multiply matrices",
    "plain": "its namespace has no products",
    "product": "it multiplies matrices",
    "foreign": "its namespace is not that of PyTorch's own operators",
    "unknown": "nobody has classified it",
}

#: The classes of operators that ``arithmetic`` refuses.
REFUSED = ("product", "foreign", "unknown")


@cache
def classify(operator: Any) -> str:
    """Return how an operator of PyTorch is classified: a key of ``MEANINGS``.

    Parameters
    ----------
    operator : torch._ops.OpOverload
        One overload, for example ``torch.ops.aten.mm.default``.
    """
    space, _, name = operator._schema.name.partition("::")
    if space == "vitruvian":
        return "replaced"
    if space in _PLAIN:
        return "plain"
    if space != "aten":
        return "parts" if _has_parts(operator) else "foreign"
    if _WHOLE.match(name):
        return "product"
    if _has_parts(operator):
        return "parts"
    if _is_view(operator):
        return "view"
    names = _names(name)
    if not names.isdisjoint(_ELEMENTWISE):
        return "reviewed"
    if any(_is_pointwise(each) for each in names):
        return "pointwise"
    many = _tensors(operator)
    if many == 0:
        return "constant"
    if many == 1 and not name.startswith(_ALONE):
        return "alone"
    return "product" if _PRODUCTS.search(name) else "unknown"


def whole(name: str) -> bool:
    """Return True for the name of an operator that calls no others, although PyTorch says so.

    PyTorch computes these before it asks for the classes of operators.
    """
    return _WHOLE.match(name) is not None


def _has_parts(operator: Any) -> bool:
    """Return True if PyTorch computes an operator by calling others through its dispatcher."""
    return operator.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd)


def _is_view(operator: Any) -> bool:
    tags = {tag.name for tag in operator.tags}
    alias = (argument.alias_info for argument in operator._schema.arguments)
    return bool(tags & {"view_copy", "inplace_view"}) or any(a and not a.is_write for a in alias)


def _names(name: str) -> set[str]:
    """Return the names of the forms of an operator that have the same products as it."""
    names = {name}
    names |= {each.removeprefix("_foreach_") for each in names}
    names |= {each.removesuffix("_") for each in names if not each.endswith("__")}
    for suffix in ("_backward_data", "_backward", "_copy"):
        names |= {each.removesuffix(suffix) for each in names}
    return {each for each in names if each}


@cache
def _is_pointwise(name: str) -> bool:
    """Return True if PyTorch marks an overload with this name as pointwise."""
    packet = getattr(torch.ops.aten, name, None)
    if packet is None:
        return False
    overloads = (getattr(packet, each) for each in packet.overloads())
    return any(torch.Tag.pointwise in each.tags for each in overloads)


def _tensors(operator: Any) -> int:
    """Return the number of tensors among an operator's operands; a list counts as two."""
    many = 0
    for argument in operator._schema.arguments:
        if getattr(argument, "is_out", False):
            continue
        kind = str(argument.type)
        if "Tensor" in kind or "__torch__" in kind:
            many += 2 if "List" in kind or "__torch__" in kind else 1
    return many


def has_numbers(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return True if a tensor or object holds numbers that matrix units multiply.

    Integers of more than 8 bits are left to PyTorch, which multiplies them exactly.
    """
    leaves = torch.utils._pytree.tree_leaves((args, kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    wide = (torch.int16, torch.int32, torch.int64, torch.bool)
    others = any(isinstance(leaf, torch.ScriptObject) for leaf in leaves)
    return others or any(tensor.dtype not in wide for tensor in tensors)
