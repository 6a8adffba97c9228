// What happens to a call of an operation: it is queued, or waits and runs on the host.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "tensors.h"

namespace simulated {

// ---------------------------------------------------------------------------------------------------- on the queue

// Results whose precision is that of a narrower type, where the fault is planted.
struct Narrow {
  const char* fault;
  std::vector<std::string> operations;
  at::ScalarType type;
  at::ScalarType through;
};

inline const std::vector<Narrow> NARROW = {
    {"coarse_exp", {"aten::exp", "aten::log"}, at::kDouble, at::kFloat},
    {"coarse_product", {"aten::mm", "aten::bmm", "aten::addmm"}, at::kFloat, at::kBFloat16},
    {"wrong_dtype", {"aten::sum"}, at::kLong, at::kInt},
};

inline void narrow(const std::string& name, const Tensor& result) {
  for (const auto& each : NARROW) {
    auto named = std::find(each.operations.begin(), each.operations.end(), name) != each.operations.end();
    if (faulty(each.fault) && named && result.scalar_type() == each.type) {
      result.copy_(result.to(each.through));
    }
  }
}

inline Stack carried_out(const c10::OperatorHandle& op, Stack stack) {
  OnlyKernels guard;
  try {
    op.callBoxed(stack);
  } catch (c10::Error& error) {
    error.add_context("The simulated accelerator met this when it carried out " + toString(op.operator_name()) + ".");
    throw;
  }
  for (const auto& result : stack) {
    each_tensor(result, [&](const Tensor& tensor) { narrow(op.schema().name(), tensor); });
  }
  return stack;
}

inline void copy(const IValue& from, const IValue& to) {
  std::vector<Tensor> values;
  each_tensor(from, [&](const Tensor& tensor) { values.push_back(tensor); });
  size_t next = 0;
  each_tensor(to, [&](const Tensor& tensor) {
    const Tensor& value = values.at(next++);
    TORCH_CHECK(tensor.sizes() == value.sizes(), "the kernel made ", value.sizes(), ", not ", tensor.sizes());
    as_written(tensor).copy_(value);
  });
}

// ------------------------------------------------------------------------------------------------------------- calls

inline bool writes(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// Products whose kernels check dtypes when they are called; those of batches without elements have no kernel.
inline const std::set<std::string> PRODUCTS = {
    "aten::mm", "aten::addmm", "aten::mv", "aten::addmv", "aten::dot", "aten::vdot"};
inline const std::set<std::string> PRODUCTS_OF_BATCHES = {"aten::bmm", "aten::baddbmm"};

inline bool has_empty(const Stack& arguments) {
  auto empty = false;
  for (const auto& each : arguments) {
    each_tensor(each, [&](const Tensor& tensor) { empty = empty || tensor.numel() == 0; });
  }
  return empty;
}

struct Call {
  Call(const c10::OperatorHandle& op, Stack given) : op(op), schema(op.schema()), given(std::move(given)) {
    index = device();
    auto of_batches = PRODUCTS_OF_BATCHES.count(schema.name()) > 0 && !has_empty(this->given);
    if (of_batches || PRODUCTS.count(schema.name()) > 0) {
      check_dtypes();
    }
  }

  void check_dtypes() const {
    auto dtype = given[0].toTensor().scalar_type();
    for (const auto& each : given) {
      each_tensor(each, [&](const Tensor& tensor) {
        TORCH_CHECK(
            tensor.scalar_type() == dtype, "expected m1 and m2 to have the same dtype, but got: ", dtype, " != ",
            tensor.scalar_type(), " in ", schema.name());
      });
    }
  }

  // The device of the tensors, all of which are there; a number may be a tensor of the CPU.
  c10::DeviceIndex device() const {
    std::optional<c10::Device> found;
    for (const auto& each : given) {
      if (each.isDevice()) {
        found = each.toDevice();
      }
      each_tensor(each, [&](const Tensor& tensor) {
        if (ours(tensor)) {
          found = found.value_or(tensor.device());
        }
      });
    }
    TORCH_CHECK(found.has_value(), schema.name(), " has no tensor of the simulated accelerator");
    auto index = index_of(*found);
    for (const auto& each : given) {
      each_tensor(each, [&](const Tensor& tensor) { check_device(tensor, index); });
    }
    return index;
  }

  void check_device(const Tensor& tensor, c10::DeviceIndex index) const {
    auto here = ours(tensor) && tensor.device().index() == index;
    auto number = tensor.is_cpu() && tensor.dim() == 0;
    auto indices = tensor.is_cpu() && schema.name().find("index") != std::string::npos;
    TORCH_CHECK(
        here || number || indices, "Expected all tensors to be on the same device, but ", schema.name(), " got one on ",
        tensor.device(), " and one on simulated:", static_cast<int>(index));
  }

  Stack mirrored(c10::DeviceType type) const {
    Mirror mirror(type);
    Stack stack;
    for (const auto& each : given) {
      stack.push_back(mirror(each));
    }
    return stack;
  }

  Stack hosts() const {
    Stack stack = mirrored(at::kCPU);
    for (size_t number = 0; number < stack.size(); ++number) {
      const auto& argument = schema.arguments()[number];
      if (argument.is_out()) {
        stack[number] = mapped(stack[number], as_written);
      }
      if (stack[number].isGenerator()) {
        stack[number] = drawing(stack[number].toGenerator());
      }
    }
    return stack;
  }

  // The generator of the CPU that draws for one of the device.
  static IValue drawing(const at::Generator& asked) {
    auto* own = dynamic_cast<Generator*>(asked.unsafeGetGeneratorImpl());
    TORCH_CHECK(own != nullptr, "Expected a generator of the simulated accelerator, but got one of ", asked.device());
    return own->inner;
  }

  void resize_written(const Stack& stand_ins) const {
    for (size_t number = 0; number < given.size(); ++number) {
      if (writes(schema.arguments()[number]) && given[number].isTensor()) {
        take_sizes(given[number].toTensor(), stand_ins[number].toTensor());
      }
    }
  }

  // The argument that a result is, or that it is a view of.
  const IValue& aliased(const c10::Argument& result) const {
    const auto& sets = result.alias_info()->beforeSets();
    for (size_t number = 0; number < given.size(); ++number) {
      const auto* info = schema.arguments()[number].alias_info();
      if (info != nullptr && info->beforeSets() == sets) {
        return given[number];
      }
    }
    TORCH_CHECK(false, schema.name(), " returns a view of nothing");
  }

  // What the call returns, by what it returned for the tensors that stand for its arguments.
  IValue result(const c10::Argument& declared, const IValue& stand_in) const {
    if (declared.alias_info() == nullptr) {
      return mapped(stand_in, [&](const Tensor& like) { return like.defined() ? allocated(like, index) : like; });
    }
    const auto& argument = aliased(declared);
    if (writes(declared)) {
      return argument;
    }
    return mapped(stand_in, [&](const Tensor& like) { return view(argument.toTensor(), like); });
  }

  Stack results(const Stack& stand_ins) const {
    Stack made;
    for (size_t number = 0; number < stand_ins.size(); ++number) {
      made.push_back(result(schema.returns()[number], stand_ins[number]));
    }
    return made;
  }

  bool computes() const {
    auto fresh = [](const c10::Argument& each) { return each.alias_info() == nullptr; };
    auto none = schema.returns().empty();
    auto writing = std::any_of(schema.arguments().begin(), schema.arguments().end(), writes);
    auto some = none || writing || std::any_of(schema.returns().begin(), schema.returns().end(), fresh);
    return some && !op.hasTag(at::Tag::inplace_view);
  }

  // Torch calls x.add_(y) as add(x, y, out=x).
  bool is_in_place() const {
    if (given.empty() || !given[0].isTensor()) {
      return false;
    }
    auto in_place = writes(schema.arguments()[0]) && !schema.arguments()[0].is_out();
    for (size_t number = 1; number < given.size(); ++number) {
      auto out = schema.arguments()[number].is_out() && given[number].isTensor();
      in_place = in_place || (out && given[number].toTensor().is_same(given[0].toTensor()));
    }
    return in_place;
  }

  const c10::OperatorHandle& op;
  const c10::FunctionSchema& schema;
  Stack given;
  c10::DeviceIndex index;
};

// Operations that had no kernel of the device, and how often.
inline std::map<std::string, int64_t>& fallbacks() {
  static auto* counts = new std::map<std::string, int64_t>;
  return *counts;
}

inline bool has_mask(const Stack& arguments) {
  auto found = false;
  auto look = [&](const Tensor& it) { found |= it.scalar_type() == at::kBool || it.scalar_type() == at::kByte; };
  for (const auto& each : arguments) {
    if (each.isOptionalTensorList()) {
      each_tensor(each, look);
    }
  }
  return found;
}

inline bool has_kernel(const Call& call) {
  const auto& op = call.op;
  auto unknown = op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::dynamic_output_shape) ||
      (PRODUCTS_OF_BATCHES.count(call.schema.name()) > 0 && has_empty(call.given));
  auto lent = faulty("silent_fallback") && call.schema.name() == "aten::exp";
  return !unknown && !has_mask(call.given) && !lent && !op.hasTag(at::Tag::nondeterministic_seeded) &&
      op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta);
}

inline void count_fallback(const c10::FunctionSchema& schema) {
  auto is_tensor = [](const c10::Argument& each) { return each.type()->isSubtypeOf(*c10::TensorType::get()); };
  if (std::any_of(schema.returns().begin(), schema.returns().end(), is_tensor)) {
    std::lock_guard<std::recursive_mutex> lock(queues_mutex());
    ++fallbacks()[schema.name()];
  }
}

// Within it, what draws without being given a generator draws the numbers of the device.
class Drawing {
 public:
  explicit Drawing(c10::DeviceIndex index) : own_(default_generator(index)) {
    exchange();
  }

  ~Drawing() {
    exchange();
  }

 private:
  void exchange() {
    auto* host = at::detail::getDefaultCPUGenerator().unsafeGetGeneratorImpl();
    auto state = host->get_state();
    host->set_state(*own_.unsafeGetGeneratorImpl()->get_state());
    own_.unsafeGetGeneratorImpl()->set_state(*state);
  }

  at::Generator own_;
};

inline Stack drawn(const Call& call, const Stack& hosts) {
  Drawing guard(call.index);
  return carried_out(call.op, hosts);
}

// The queue is waited for, and the host computes.
inline Stack at_once(const Call& call) {
  count_fallback(call.schema);
  auto reads = call.schema.name() == "aten::_local_scalar_dense";
  if (!(reads && faulty("no_synchronisation"))) {
    carry_out(end_of(current_queue(call.index)));
  }
  auto hosts = call.hosts();
  auto draws = call.op.hasTag(at::Tag::nondeterministic_seeded);
  auto values = draws ? drawn(call, hosts) : carried_out(call.op, hosts);
  call.resize_written(hosts);
  auto results = call.results(values);
  OnlyKernels guard;
  for (size_t number = 0; number < call.given.size(); ++number) {
    if (writes(call.schema.arguments()[number])) {
      copy(hosts[number], Mirror(at::kCPU)(call.given[number]));
    }
  }
  for (size_t number = 0; number < results.size(); ++number) {
    if (call.schema.returns()[number].alias_info() == nullptr) {
      copy(values[number], Mirror(at::kCPU)(results[number]));
    }
  }
  return results;
}

// The shapes of the results are known at once, their values when the queue gets there.
inline Stack queued(const Call& call) {
  auto stand_ins = call.mirrored(at::kMeta);
  auto outputs = stand_ins;
  try {
    OnlyKernels guard;
    call.op.callBoxed(outputs);
  } catch (const c10::NotImplementedError&) {
    return at_once(call);
  }
  call.resize_written(stand_ins);
  auto results = call.results(outputs);
  if (!call.computes()) {
    return results;
  }
  Mirror mirror(at::kCPU);
  Stack targets;
  for (size_t number = 0; number < results.size(); ++number) {
    auto fresh = call.schema.returns()[number].alias_info() == nullptr;
    targets.push_back(fresh ? mirror(results[number]) : IValue());
  }
  enqueue(current_queue(call.index), [op = call.op, hosts = call.hosts(), targets] {
    if (faulty("empty_launch") && has_empty(hosts)) {
      return;
    }
    auto values = carried_out(op, hosts);
    OnlyKernels guard;
    for (size_t number = 0; number < targets.size(); ++number) {
      copy(values[number], targets[number]);
    }
  });
  return results;
}

// The version of the tensor that a call writes into; 0 if it has none.
inline int64_t in_place_version(const Call& call) {
  auto counted = call.is_in_place() && !call.given[0].toTensor().is_inference();
  return counted ? call.given[0].toTensor()._version() : 0;
}

// Faults of whole calls: what the fault makes of the results, or nothing.
inline std::optional<Stack> planted(const Call& call) {
  const auto& name = call.schema.name();
  if (faulty("guard_left") && in_backward()) {
    left_device() = DEVICES - 1 - call.index;
  }
  if (faulty("accumulation_elsewhere") && in_backward() && name.rfind("aten::add", 0) == 0 && call.is_in_place()) {
    return Stack{call.given[0]};
  }
  auto version = in_place_version(call);
  if (faulty("lost_version") && version > 0) {
    auto counter = call.given[0].toTensor().unsafeGetTensorImpl()->version_counter();
    counter.set_version(version - 1);
  }
  auto by_number = name == "aten::mul" && call.given[1].isTensor() && call.given[1].toTensor().dim() == 0;
  if (faulty("gradient_on_cpu") && in_backward() && by_number && call.schema.overload_name() == "Tensor") {
    auto results = queued(call);
    carry_out(end_of(current_queue(call.index)));
    return Stack{snapshot(on_host(results[0].toTensor()))};
  }
  return std::nullopt;
}

inline void kernel(const c10::OperatorHandle& op, Stack* stack) {
  Call call(op, torch::jit::pop(*stack, op.schema().arguments().size()));
  auto results = planted(call);
  if (!results) {
    results = has_kernel(call) ? queued(call) : at_once(call);
  }
  for (auto& result : *results) {
    torch::jit::push(*stack, std::move(result));
  }
}

} // namespace simulated
