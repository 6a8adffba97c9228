// Functions for the clauses about torch::autograd::Function. A fault can be planted by its name: the Function, or what
// it gets, is then as the clause denies.

#pragma once

#include <torch/extension.h>

namespace probes {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

std::string planted;

bool is(const char* fault) { return planted == fault; }

// What forward and backward saw last.
struct Seen {
  std::vector<bool> needs, defined;
  bool recorded = false;
} seen;

double first_factor = 0, last_factor = 0;

// factor * x * w + bias, and x + w; the tensors of the list belong to no graph of this Function.
struct Product : Function<Product> {
  static variable_list forward(
      AutogradContext* ctx, double factor, const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias,
      const std::vector<Tensor>& listed, bool materialize) {
    seen.recorded = torch::GradMode::is_enabled() || is("forward is recorded");
    variable_list saved{x, w};
    if (is("saved tensors change places")) saved = {w, x};
    if (is("saved tensors lose their graph")) saved = {x.detach(), w.detach()};
    if (is("a change of a saved tensor passes unseen")) saved = {x.clone(), w.clone()};
    ctx->save_for_backward(saved);
    if (is("saved tensors are never freed")) {
      ctx->save_for_backward({});
      ctx->saved_data["saved"] = saved;
    }
    ctx->saved_data["factor"] = last_factor = factor;
    ctx->saved_data["bias"] = bias.has_value();
    if (is("undefined cotangents stay undefined")) ctx->set_materialize_grads(false);
    if (!materialize && !is("set_materialize_grads is ignored")) ctx->set_materialize_grads(false);
    auto y = factor * x * w;
    if (bias.has_value()) y = y + *bias;
    for (const auto& each : listed) y = y + each;
    return {y, x + w};
  }

  static variable_list backward(AutogradContext* ctx, variable_list g) {
    auto kept = ctx->saved_data.find("saved");
    auto saved = kept == ctx->saved_data.end() ? ctx->get_saved_variables() : kept->second.toTensorVector();
    auto factor = is("saved_data is that of the last call") ? last_factor : ctx->saved_data["factor"].toDouble();
    auto inputs = ctx->saved_data["bias"].toBool() ? 3 : 2;
    seen.needs.clear();
    seen.defined.clear();
    for (int n = 0; n < inputs; n++) {
      seen.needs.push_back(is("needs_input_grad is always true") || ctx->needs_input_grad(n));
    }
    // Zeros of the shape of their output.
    for (const auto& each : g) seen.defined.push_back(each.defined() && each.sizes() == saved[0].sizes());
    if (is("backward gets no cotangent for the second output")) seen.defined.pop_back();
    Tensor gx, gw, gb;
    if (g[0].defined()) {
      gx = factor * g[0] * saved[1];
      gw = factor * g[0] * saved[0];
      if (inputs == 3) gb = g[0];
    }
    if (g[1].defined()) {
      gx = gx.defined() ? gx + g[1] : g[1];
      gw = gw.defined() ? gw + g[1] : g[1];
    }
    return {Tensor(), gx, gw, gb, Tensor(), Tensor()};
  }
};

variable_list product(
    double factor, const Tensor& x, const Tensor& w, std::optional<Tensor> bias, const std::vector<Tensor>& listed,
    bool materialize) {
  if (bias.has_value() && is("an optional tensor is no input")) bias = bias->detach();
  auto found = Product::apply(factor, x, w, bias, listed, materialize);
  if (is("the tensors of a list are inputs")) {
    for (const auto& each : listed) found[0] = found[0] + 0 * each;
  }
  return found;
}

// The sum of the tensors of a TensorList, which are inputs; each has a gradient of its own.
struct Summed : Function<Summed> {
  static Tensor forward(AutogradContext* ctx, at::TensorList xs) {
    ctx->saved_data["count"] = static_cast<int64_t>(xs.size());
    return at::stack(xs).sum(0);
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    variable_list found;
    for (int64_t n = 0; n < ctx->saved_data["count"].toInt(); n++) {
      found.push_back(is("the tensors of a TensorList are no inputs") ? Tensor() : g[0] * (n + 1));
    }
    return found;
  }
};

// Its input, doubled in place.
struct Doubled : Function<Doubled> {
  static Tensor forward(AutogradContext* ctx, Tensor x) {
    x.mul_(2);
    if (is("mark_dirty is ignored")) return x.clone();
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0] * 2}; }
};

// 2 * x, and x rounded, which has no gradient.
struct Rounded : Function<Rounded> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x) {
    auto rounded = x.round();
    if (!is("mark_non_differentiable is ignored")) ctx->mark_non_differentiable({rounded});
    return {x * 2, rounded};
  }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0] * 2}; }
};

// x * y, with so many gradients; those that are too many are undefined, or not.
struct Counted : Function<Counted> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& y, int64_t count, bool defined) {
    ctx->saved_data["count"] = is("a wrong number of gradients is accepted") ? 4 : count;
    ctx->saved_data["defined"] = defined && !is("a wrong number of gradients is accepted");
    return x * y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    variable_list found{g[0], g[0], Tensor(), Tensor()};
    auto defined = ctx->saved_data["defined"].toBool();
    auto count = static_cast<size_t>(ctx->saved_data["count"].toInt());
    if (is("too many undefined gradients are refused") && count > 4) defined = true;
    found.resize(count, defined ? g[0] : Tensor());
    return found;
  }
};

// factor * x, whose backward has a gradient for the number as well, or not.
struct Overfull : Function<Overfull> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, double factor, bool defined) {
    ctx->saved_data["factor"] = factor;
    ctx->saved_data["defined"] = defined && !is("a gradient for a number is dropped");
    return factor * x;
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    auto defined = ctx->saved_data["defined"].toBool();
    return {ctx->saved_data["factor"].toDouble() * g[0], defined ? g[0] : Tensor(), Tensor()};
  }
};

// factor * x, for compiled autograd: backward is traced into its graph, or called from there.
template <bool traceable>
struct Traced : Function<Traced<traceable>> {
  static constexpr bool is_traceable = traceable;
  static Tensor forward(AutogradContext* ctx, const Tensor& x, double factor) {
    if (!is("a compiled backward keeps the numbers of the first") || first_factor == 0) first_factor = factor;
    ctx->saved_data["factor"] = factor;
    ctx->save_for_backward({x});
    return factor * x * x;
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    auto compared = is("a compiled backward keeps the numbers of the first");
    auto factor = compared ? first_factor : ctx->saved_data["factor"].toDouble();
    return {2 * factor * g[0] * ctx->get_saved_variables()[0], Tensor()};
  }
};

// The example in the comment on Function, as it is printed there.
struct MyFunction : public Function<MyFunction> {
  static constexpr bool is_traceable = true;
  static variable_list forward(AutogradContext* ctx, int n, Tensor var) {
    ctx->saved_data["n"] = n;
    var.mul_(n);
    ctx->mark_dirty({var});
    return {var};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad_output) {
    auto n = ctx->saved_data["n"].toInt();
    return {grad_output[0] * n};
  }
};

// x + y, without a gradient for x.
struct Cut : Function<Cut> {
  static Tensor forward(AutogradContext*, const Tensor& x, const Tensor& y) { return x + y; }
  static variable_list backward(AutogradContext*, variable_list g) {
    return {is("an undefined gradient is zeros") ? at::zeros_like(g[0]) : Tensor(), g[0]};
  }
};

void add(py::module_& m) {
  m.def("plant", [](const std::string& fault) {
    planted = fault;
    first_factor = 0;
  });
  m.def("seen", []() { return py::make_tuple(seen.needs, seen.defined, seen.recorded); });
  m.def("product", &product);
  m.def("summed", [](const std::vector<Tensor>& xs) { return Summed::apply(at::TensorList(xs)); });
  m.def("doubled", [](const Tensor& x) { return Doubled::apply(x); });
  m.def("rounded", [](const Tensor& x) { return Rounded::apply(x); });
  m.def("counted", [](const Tensor& x, const Tensor& y, int64_t count, bool defined) {
    return Counted::apply(x, y, count, defined);
  });
  m.def("cut", [](const Tensor& x, const Tensor& y) {
    return is("a transform sees no Function") ? x + y : Cut::apply(x, y);
  });
  m.def("overfull", [](const Tensor& x, double factor, bool defined) { return Overfull::apply(x, factor, defined); });
  m.def("traced", [](const Tensor& x, double factor, bool traceable) {
    return traceable ? Traced<true>::apply(x, factor) : Traced<false>::apply(x, factor);
  });
  m.def("printed", [](int64_t n, const Tensor& x) { return MyFunction::apply(static_cast<int>(n), x)[0]; });
}

}  // namespace probes
