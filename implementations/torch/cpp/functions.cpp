// The documented Functions, each as a torch::autograd::Function: what a body of reference/functions does, in C++.

#include <torch/extension.h>

#include <torch/csrc/autograd/functions/basic_ops.h>

#include "probes.h"

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

namespace {

// As torch.autograd.function.once_differentiable: C++ has no such word. Gradients raise when they are differentiated.
variable_list once(const variable_list& cotangents, const std::function<variable_list()>& gradients) {
  variable_list found;
  {
    torch::AutoGradMode off(false);
    found = gradients();
  }
  bool tracked = false;
  for (const auto& g : cotangents) tracked = tracked || (g.defined() && g.requires_grad());
  if (!torch::GradMode::is_enabled() || !tracked) return found;
  auto refused = std::make_shared<torch::autograd::DelayedError>(
      "trying to differentiate twice a function that was marked with once_differentiable", 1);
  for (auto& g : found) {
    if (g.defined()) g = (*refused)({g.detach().requires_grad_()})[0];
  }
  return found;
}

Tensor reduced(const Tensor& gradient, at::IntArrayRef shape) { return at::sum_to(gradient, shape); }

struct Exp : Function<Exp> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    auto y = x.exp();
    ctx->save_for_backward({y});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    return {g[0] * ctx->get_saved_variables()[0].conj()};
  }
};

struct Square : Function<Square> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x.pow(2);
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    return {g[0] * 2 * ctx->get_saved_variables()[0].conj()};
  }
};

struct CubeBackward : Function<CubeBackward> {
  static Tensor forward(AutogradContext* ctx, const Tensor& g, const Tensor& x) {
    ctx->save_for_backward({x, g});
    return g * 3 * x.conj().pow(2);
  }
  static variable_list backward(AutogradContext* ctx, variable_list gg) {
    auto saved = ctx->get_saved_variables();
    auto x = saved[0], g = saved[1];
    return {gg[0] * 3 * x.pow(2), gg[0].conj() * g * 6 * x.conj()};
  }
};

struct Cube : Function<Cube> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x.pow(3);
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    return {CubeBackward::apply(g[0], ctx->get_saved_variables()[0])};
  }
};

struct Sinh : Function<Sinh> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x) {
    auto up = x.exp(), down = (-x).exp();
    ctx->save_for_backward({up, down});
    return {(up - down) / 2, up, down};
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    auto saved = ctx->get_saved_variables();
    auto up = saved[0], down = saved[1];
    return {g[0] * ((up + down).conj() / 2) + g[1] * up.conj() - g[2] * down.conj()};
  }
};

struct LegendrePolynomial3 : Function<LegendrePolynomial3> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return 0.5 * (5 * x.pow(3) - 3 * x);
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    return {g[0] * 1.5 * (5 * ctx->get_saved_variables()[0].conj().pow(2) - 1)};
  }
};

struct LinearFunction : Function<LinearFunction> {
  static Tensor forward(
      AutogradContext* ctx, const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
    ctx->save_for_backward({input, weight});
    ctx->saved_data["bias"] = bias.has_value();
    auto output = input.mm(weight.t());
    return bias.has_value() ? output + *bias : output;
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    auto saved = ctx->get_saved_variables();
    Tensor input, weight, bias;
    if (ctx->needs_input_grad(0)) input = g[0].mm(saved[1].conj());
    if (ctx->needs_input_grad(1)) weight = g[0].t().mm(saved[0].conj());
    if (ctx->saved_data["bias"].toBool() && ctx->needs_input_grad(2)) bias = g[0].sum(0);
    return {input, weight, bias};
  }
};

template <bool materialize>
struct MulConstant : Function<MulConstant<materialize>> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, double constant) {
    ctx->set_materialize_grads(materialize);
    ctx->saved_data["constant"] = constant;
    return x * constant;
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    if (!g[0].defined()) return {Tensor(), Tensor()};
    return {g[0] * ctx->saved_data["constant"].toDouble(), Tensor()};
  }
};

struct SaveForBackward : Function<SaveForBackward> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& y, int64_t z) {
    auto w = x * z;
    auto out = x * y + y * z + w * y;
    ctx->save_for_backward({x, y, w, out});
    ctx->saved_data["z"] = z;
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    return once(g, [&]() -> variable_list {
      auto saved = ctx->get_saved_variables();
      auto x = saved[0], y = saved[1], w = saved[2];
      auto z = ctx->saved_data["z"].toInt();
      return {g[0] * (y + y * z).conj(), g[0] * (x + z + w).conj(), Tensor()};
    });
  }
};

template <bool materialize>
struct SimpleFunc : Function<SimpleFunc<materialize>> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x) {
    ctx->set_materialize_grads(materialize);
    ctx->save_for_backward({x});
    return {x.clone(), x.clone()};
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    return once(g, [&]() -> variable_list {
      auto gradient = at::zeros_like(ctx->get_saved_variables()[0]);
      for (const auto& each : g) {
        if (each.defined()) gradient = gradient + each;
      }
      return {gradient};
    });
  }
};

struct Mul : Function<Mul> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& y) {
    ctx->save_for_backward({x, y});
    return x * y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    auto saved = ctx->get_saved_variables();
    Tensor gx, gy;
    if (ctx->needs_input_grad(0)) gx = reduced(Mul::apply(g[0], saved[1].conj()), saved[0].sizes());
    if (ctx->needs_input_grad(1)) gy = reduced(Mul::apply(g[0], saved[0].conj()), saved[1].sizes());
    return {gx, gy};
  }
};

struct GradientScaler : Function<GradientScaler> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.clone(); }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0] * 3.14}; }
};

struct Sort : Function<Sort> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x, int64_t axis) {
    auto indices = x.argsort(axis);
    ctx->mark_non_differentiable({indices});
    ctx->save_for_backward({indices});
    ctx->saved_data["axis"] = axis;
    return {at::take_along_dim(x, indices, axis), indices};
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    return once({g[0]}, [&]() -> variable_list {
      auto axis = ctx->saved_data["axis"].toInt();
      auto inverse = ctx->get_saved_variables()[0].argsort(axis);
      return {at::take_along_dim(g[0], inverse, axis), Tensor()};
    });
  }
};

struct GlobalMaxPool : Function<GlobalMaxPool> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x) {
    auto flat = x.reshape({x.size(0), x.size(1), x.size(2) * x.size(3)});
    auto indices = flat.argmax(-1);
    ctx->mark_non_differentiable({indices});
    ctx->save_for_backward({indices});
    ctx->saved_data["shape"] = x.sizes();
    return {at::take_along_dim(flat, indices.unsqueeze(-1), -1).squeeze(-1), indices};
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    auto shape = ctx->saved_data["shape"].toIntVector();
    auto indices = ctx->get_saved_variables()[0];
    auto chosen = indices.unsqueeze(-1) == at::arange(shape[2] * shape[3], indices.options());
    return {at::where(chosen, g[0].unsqueeze(-1), at::zeros({}, g[0].options())).reshape(shape)};
  }
};

struct ReciprocalInplace : Function<ReciprocalInplace> {
  static Tensor forward(AutogradContext* ctx, Tensor x) {
    x.reciprocal_();
    ctx->mark_dirty({x});
    ctx->save_for_backward({x});
    return x;
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    return {-g[0] * ctx->get_saved_variables()[0].conj().pow(2)};
  }
};

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("Exp", [](const Tensor& x) { return Exp::apply(x); });
  m.def("Square", [](const Tensor& x) { return Square::apply(x); });
  m.def("Cube", [](const Tensor& x) { return Cube::apply(x); });
  m.def("Sinh", [](const Tensor& x) { return Sinh::apply(x); });
  m.def("LegendrePolynomial3", [](const Tensor& x) { return LegendrePolynomial3::apply(x); });
  m.def("LinearFunction", [](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
    return LinearFunction::apply(input, weight, bias);
  }, py::arg("input"), py::arg("weight"), py::arg("bias") = py::none());
  m.def("MulConstant", [](const Tensor& x, double constant) { return MulConstant<true>::apply(x, constant); });
  m.def("MulConstantUnmaterialized", [](const Tensor& x, double constant) {
    return MulConstant<false>::apply(x, constant);
  });
  m.def("SaveForBackward", [](const Tensor& x, const Tensor& y, int64_t z) { return SaveForBackward::apply(x, y, z); });
  m.def("SimpleFunc", [](const Tensor& x) { return SimpleFunc<true>::apply(x); });
  m.def("SimpleFuncUnmaterialized", [](const Tensor& x) { return SimpleFunc<false>::apply(x); });
  m.def("NumpyMul", [](const Tensor& x, const Tensor& y) { return Mul::apply(x, y); });
  m.def("GradientScaler", [](const Tensor& x) { return GradientScaler::apply(x); });
  m.def("Sort", [](const Tensor& x, int64_t axis) { return Sort::apply(x, axis); });
  m.def("GlobalMaxPool", [](const Tensor& x) { return GlobalMaxPool::apply(x); });
  m.def("ReciprocalInplace", [](const Tensor& x) { return ReciprocalInplace::apply(x); });
  auto probed = m.def_submodule("probes");
  probes::add(probed);
}
