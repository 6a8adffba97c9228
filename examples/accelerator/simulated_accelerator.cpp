// The kernels of the simulated accelerator, and what Python needs of it. All is one unit: it compiles in seconds.

#include <ATen/native/Resize.h>
#include <ATen/ops/set_native.h>

#include "calls.h"

namespace at::autocast {
TORCH_API at::ScalarType get_autocast_dtype(at::DeviceType device);
TORCH_API at::Tensor cached_cast(at::ScalarType to, const at::Tensor& tensor, c10::DeviceType device);
} // namespace at::autocast

namespace simulated {

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

// ----------------------------------------------------------------------------------------------- kernels of the device

c10::Allocator* memory_of(std::optional<at::Device> device) {
  auto index = index_of(device.value_or(at::Device(TYPE)));
  TORCH_CHECK(index < DEVICES, "there is no device simulated:", static_cast<int>(index), ": choose 0 or 1");
  return memory(faulty("index_mixed") ? 0 : index);
}

Tensor empty(
    at::IntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return born(at::detail::empty_generic(
      sizes, memory_of(device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype),
      format));
}

Tensor empty_strided(
    at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<at::Device> device, std::optional<bool>) {
  return born(at::detail::empty_strided_generic(
      sizes, strides, memory_of(device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::dtype_or_default(dtype)));
}

const Tensor& resize_(const Tensor& self, at::IntArrayRef sizes, std::optional<at::MemoryFormat> format) {
  synchronize_device(self.device().index());
  return at::native::resize_(self, sizes, format);
}

Tensor& set_nothing(Tensor& self) {
  auto index = self.device().index();
  return self.set_(c10::Storage(c10::Storage::use_byte_size_t(), 0, memory(index), true));
}

Tensor as_read(Tensor host) {
  if (faulty("conj_forgotten") && host.is_conj()) {
    host._set_conj(false);
  }
  return faulty("dropped_offset") ? with_layout(host, host.strides(), 0) : host;
}

void to_device(const Tensor& from, const Tensor& to, bool non_blocking) {
  auto late = faulty("non_blocking_lies") || (non_blocking && from.is_pinned());
  auto source = late ? from : snapshot(from);
  enqueue(current_queue(to.device().index()), [source, target = on_host(to)] {
    OnlyKernels guard;
    as_written(target).copy_(source);
  });
}

void to_host(const Tensor& from, const Tensor& to, bool non_blocking) {
  auto& queue = current_queue(from.device().index());
  auto copy = [source = as_read(on_host(from)), target = to] {
    OnlyKernels guard;
    target.copy_(source);
  };
  if (non_blocking) {
    enqueue(queue, copy);
    return;
  }
  if (!faulty("no_synchronisation")) {
    carry_out(end_of(queue));
  }
  copy();
}

// Both streams have waited for the copy before they go on.
void between_devices(const Tensor& from, const Tensor& to) {
  auto& reading = current_queue(from.device().index());
  auto& writing = current_queue(to.device().index());
  auto ordered = !faulty("unordered_copy");
  if (ordered) {
    make_wait(reading, end_of(writing));
  }
  enqueue(reading, [source = as_read(on_host(from)), target = on_host(to)] {
    OnlyKernels guard;
    as_written(target).copy_(source);
  });
  if (ordered) {
    make_wait(writing, end_of(reading));
  }
}

Tensor copy_from(const Tensor& self, const Tensor& to, bool non_blocking) {
  if (!ours(self)) {
    to_device(self, to, non_blocking);
  } else if (!ours(to)) {
    to_host(self, to, non_blocking);
  } else {
    between_devices(self, to);
  }
  return to;
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& to) {
  to.resize_(self.sizes());
  return copy_from(self, to, false);
}

// A storage is kept as long as the queue needs it, on whatever stream.
void record_stream(Tensor&, c10::Stream) {}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&kernel>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("resize_", resize_);
  m.impl("set_.source_Storage_storage_offset", at::native::set_storage_cpu_);
  m.impl("set_.source_Storage", static_cast<Tensor& (*)(Tensor&, at::Storage)>(at::native::set_));
  m.impl("set_.source_Tensor", at::native::set_tensor_);
  m.impl("set_", set_nothing);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("record_stream", record_stream);
  m.impl("mul.Tensor", torch::CppFunction::makeFromBoxedFunction<&kernel>());
}

// A copy resolves the conjugate itself: torch would resolve it by a copy.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

// ---------------------------------------------------------------------------------------------------------- autocast

template <bool lower>
void autocast(const c10::OperatorHandle& op, Stack* stack) {
  c10::impl::ExcludeDispatchKeyGuard guard(c10::autocast_dispatch_keyset);
  auto dtype = lower ? at::autocast::get_autocast_dtype(TYPE) : at::kFloat;
  for (const auto& argument : torch::jit::last(*stack, op.schema().arguments().size())) {
    auto cast = [&](const Tensor& it) { return it.defined() ? at::autocast::cached_cast(dtype, it, TYPE) : it; };
    const_cast<IValue&>(argument) = mapped(argument, cast);
  }
  op.callBoxed(stack);
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  for (const auto* name : {"mm", "bmm", "mv", "matmul", "addmm", "addmv", "baddbmm", "linear"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&autocast<true>>());
  }
  for (const auto* name : {"exp", "log", "pow.Tensor_Scalar", "sum", "sum.dim_IntList", "cumsum", "softmax.int"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&autocast<false>>());
  }
}

// -------------------------------------------------------------------------------------------------- what Python needs

int64_t waiting() {
  std::lock_guard<std::recursive_mutex> lock(queues_mutex());
  int64_t length = 0;
  for (const auto& queue : queues()) {
    length += static_cast<int64_t>(queue->work.size());
  }
  return length;
}

// What was queued with one fault is carried out with it; errors in it concern nobody any more.
void plant(const std::string& name) {
  while (waiting() > 0) {
    try {
      synchronize_device(0);
      synchronize_device(1);
    } catch (const c10::Error&) {
      continue;
    }
  }
  fault() = name;
  planter() = std::this_thread::get_id();
}

c10::Dict<std::string, int64_t> counted() {
  c10::Dict<std::string, int64_t> found;
  std::lock_guard<std::recursive_mutex> lock(queues_mutex());
  for (const auto& [name, count] : fallbacks()) {
    found.insert(name, count);
  }
  return found;
}

at::Generator generator(int64_t index) {
  return default_generator(static_cast<c10::DeviceIndex>(index));
}

TORCH_LIBRARY(simulated_accelerator, m) {
  m.def("plant", plant);
  m.def("fallbacks", counted);
  m.def("waiting", waiting);
  m.def("generator", generator);
}

struct Registration {
  Registration() {
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    c10::SetAllocator(TYPE, new CurrentMemory);
  }
} registration;

} // namespace simulated
