// Tensors that stand for tensors of the simulated accelerator: of the host, over the same memory, or without memory.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "guard.h"

namespace simulated {

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;

inline bool ours(const Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == TYPE;
}

// Within it an operation goes to the kernel of its tensors: whatever mode or transform the caller is in.
struct OnlyKernels : c10::impl::ForceDispatchKeyGuard {
  OnlyKernels()
      : ForceDispatchKeyGuard(
            c10::DispatchKeySet(c10::DispatchKey::BackendSelect),
            c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset) {}
};

template <class Map>
inline IValue mapped(const IValue& value, Map map) {
  if (value.isTensor()) {
    return map(value.toTensor());
  }
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& each : value.toTensorVector()) {
      list.push_back(map(each));
    }
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (const std::optional<Tensor>& each : value.toOptionalTensorVector()) {
      list.push_back(each.has_value() ? std::optional<Tensor>(map(*each)) : std::nullopt);
    }
    return list;
  }
  return value;
}

template <class Visit>
inline void each_tensor(const IValue& value, Visit visit) {
  mapped(value, [&](const Tensor& tensor) {
    if (tensor.defined()) {
      visit(tensor);
    }
    return tensor;
  });
}

// ------------------------------------------------------------------------------------ tensors that stand for tensors

// Whether a tensor is a number of Python decides the dtypes of results.
inline void keep_number(const Tensor& from, const Tensor& to) {
  if (from.unsafeGetTensorImpl()->is_wrapped_number()) {
    to.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
}

inline Tensor over(const c10::Storage& storage, c10::DispatchKey key, const Tensor& like) {
  auto made = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(key), like.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  keep_number(like, made);
  made._set_conj(like.is_conj());
  made._set_neg(like.is_neg());
  return made;
}

// The host may change its tensor before the queue gets there.
inline Tensor snapshot(const Tensor& host) {
  OnlyKernels guard;
  auto copied = host.clone();
  keep_number(host, copied);
  return copied;
}

// The tensors of one call as tensors of the host or without memory. They overlap where those of the call do.
class Mirror {
 public:
  explicit Mirror(c10::DeviceType type) : type_(type) {}

  Tensor operator()(const Tensor& tensor) {
    auto number = !ours(tensor) && type_ == at::kMeta && tensor.defined() && tensor.dim() == 0;
    if (!tensor.defined() || number) {
      return tensor;
    }
    if (type_ == at::kCPU && !ours(tensor)) {
      return snapshot(tensor);
    }
    auto key = type_ == at::kCPU ? c10::DispatchKey::CPU : c10::DispatchKey::Meta;
    return over(storage(tensor.storage()), key, tensor);
  }

  IValue operator()(const IValue& value) {
    auto map = [this](const Tensor& it) { return (*this)(it); };
    return value.isDevice() ? IValue(c10::Device(type_)) : mapped(value, map);
  }

 private:
  const c10::Storage& storage(const c10::Storage& real) {
    auto& found = storages_[real.unsafeGetStorageImpl()];
    if (!found) {
      found = c10::Storage(
          c10::Storage::use_byte_size_t(), real.nbytes(), pointer(real), c10::GetAllocator(type_), /*resizable=*/true);
    }
    return found;
  }

  c10::DataPtr pointer(const c10::Storage& real) {
    if (type_ == at::kMeta) {
      return {nullptr, at::kMeta};
    }
    auto* block = real.mutable_data();
    if (faulty("stale_memory")) {
      return {block, at::kCPU};
    }
    return {block, device_blocks().keep(block), memory(0)->raw_deleter(), at::kCPU};
  }

  c10::DeviceType type_;
  std::unordered_map<c10::StorageImpl*, c10::Storage> storages_;
};

inline Tensor on_host(const Tensor& tensor) {
  return Mirror(at::kCPU)(tensor);
}

inline Tensor with_layout(const Tensor& tensor, at::IntArrayRef strides, int64_t offset) {
  auto made = over(tensor.storage(), c10::DispatchKey::CPU, tensor);
  made.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), strides, offset);
  return made;
}

// What a kernel writes into.
inline Tensor as_written(const Tensor& host) {
  if (!faulty("wrong_stride") || !host.defined() || !host.is_non_overlapping_and_dense()) {
    return host;
  }
  return with_layout(host, c10::contiguous_strides(host.sizes()), host.storage_offset());
}

// With the fault lost_version: high enough, as versions cannot fall below zero.
constexpr int64_t FIRST_VERSION = 1000;

inline Tensor born(at::TensorBase made) {
  Tensor tensor(std::move(made));
  if (faulty("lost_version") && !tensor.is_inference()) {
    auto counter = tensor.unsafeGetTensorImpl()->version_counter();
    counter.set_version(FIRST_VERSION);
  }
  return tensor;
}

inline Tensor allocated(const Tensor& like, c10::DeviceIndex index) {
  return born(at::detail::empty_strided_generic(
      like.sizes(), like.strides(), memory(index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      like.scalar_type()));
}

inline Tensor view(const Tensor& base, const Tensor& like) {
  auto made = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(base.storage()), base.key_set(), like.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  made._set_conj(like.is_conj());
  made._set_neg(like.is_neg());
  return made;
}

// Give a tensor that an operation writes the sizes that the operation gave to the tensor that stands for it.
inline void take_sizes(const Tensor& tensor, const Tensor& like) {
  if (tensor.sizes() == like.sizes() && tensor.strides() == like.strides()) {
    return;
  }
  auto bytes = at::detail::computeStorageNbytes(
      like.sizes(), like.strides(), tensor.element_size(), like.storage_offset());
  if (bytes > tensor.storage().nbytes()) {
    Hooks().resizePrivateUse1Bytes(tensor.storage(), bytes);
  }
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
}

} // namespace simulated
