// What torch asks of a back end beside kernels: the guard of devices, streams and events, random numbers, and hooks.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "streams.h"

namespace simulated {

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override {
    return TYPE;
  }

  c10::Device getDevice() const override {
    return {TYPE, current_device()};
  }

  c10::Device exchangeDevice(c10::Device device) const override {
    auto before = getDevice();
    setDevice(device);
    return before;
  }

  void setDevice(c10::Device device) const override {
    set_device(index_of(device));
  }

  void uncheckedSetDevice(c10::Device device) const noexcept override {
    own_device() = index_of(device);
  }

  c10::DeviceIndex deviceCount() const noexcept override {
    return DEVICES;
  }

  void synchronizeDevice(const c10::DeviceIndex index) const override {
    synchronize_device(index);
  }

  c10::Stream getStream(c10::Device device) const override {
    return current_stream(index_of(device));
  }

  c10::Stream getDefaultStream(c10::Device device) const override {
    return stream(index_of(device), index_of(device));
  }

  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return new_stream(index_of(device));
  }

  c10::Stream getNewStream(c10::Device device, int) const override {
    return new_stream(index_of(device));
  }

  c10::Stream exchangeStream(c10::Stream next) const override {
    auto before = getStream(next.device());
    current_streams().at(next.device_index()) = next.id();
    return before;
  }

  bool queryStream(const c10::Stream& asked) const override {
    return end_of(queue_of(asked)).reached();
  }

  void synchronizeStream(const c10::Stream& awaited) const override {
    carry_out(end_of(queue_of(awaited)));
  }

  void record(void** event, const c10::Stream& on, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (*event == nullptr) {
      *event = new Place;
    }
    *static_cast<Place*>(*event) = end_of(queue_of(on));
  }

  void block(void* event, const c10::Stream& waiting) const override {
    if (event != nullptr && !faulty("wrong_event")) {
      make_wait(queue_of(waiting), *static_cast<Place*>(event));
    }
  }

  bool queryEvent(void* event) const override {
    return event == nullptr || static_cast<Place*>(event)->reached();
  }

  void synchronizeEvent(void* event) const override {
    if (event != nullptr) {
      carry_out(*static_cast<Place*>(event));
    }
  }

  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Place*>(event);
  }

  // A microsecond for each operation, in milliseconds.
  double elapsedTime(void* first, void* second, const c10::DeviceIndex) const override {
    auto position = [](void* event) { return static_cast<double>(static_cast<Place*>(event)->position); };
    return (position(second) - position(first)) / 1000;
  }
};

// A generator of the device: the one of the CPU within it draws.
class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(c10::DeviceIndex index, at::Generator inner = at::make_generator<at::CPUGeneratorImpl>())
      : GeneratorImpl({TYPE, index}, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)), inner(std::move(inner)) {}

  void set_current_seed(uint64_t seed) override {
    inner.set_current_seed(seed);
  }
  void set_offset(uint64_t offset) override {
    inner.set_offset(offset);
  }
  uint64_t get_offset() const override {
    return inner.get_offset();
  }
  uint64_t current_seed() const override {
    return inner.current_seed();
  }
  uint64_t seed() override {
    return inner.seed();
  }
  void set_state(const c10::TensorImpl& state) override {
    inner.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return inner.unsafeGetGeneratorImpl()->get_state();
  }

  at::Generator inner;

 private:
  Generator* clone_impl() const override {
    return new Generator(device().index(), inner.clone());
  }
};

inline const at::Generator& default_generator(c10::DeviceIndex index) {
  static auto* both = new std::array<at::Generator, DEVICES>{
      at::make_generator<Generator>(c10::DeviceIndex(0)), at::make_generator<Generator>(c10::DeviceIndex(1))};
  return both->at(index < 0 ? current_device() : index);
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return true;
  }
  bool hasPrimaryContext(c10::DeviceIndex) const override {
    return true;
  }
  c10::DeviceIndex deviceCount() const override {
    return DEVICES;
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return current_device();
  }
  void setCurrentDevice(c10::DeviceIndex index) const override {
    set_device(index);
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    auto before = current_device();
    set_device(index);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 ? index : exchangeDevice(index);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return default_generator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return at::make_generator<Generator>(index < 0 ? current_device() : index);
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    return pinned_memory();
  }
  bool isPinnedPtr(const void* address) const override {
    return pinned_blocks().holds(address);
  }
  at::Device getDeviceFromPtr(void*) const override {
    return {TYPE, current_device()};
  }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    auto index = storage.device().index();
    // Queued work has the old block.
    synchronize_device(index);
    auto kept = std::min(bytes, storage.nbytes());
    auto block = memory(index)->allocate(bytes);
    if (kept > 0) {
      std::memcpy(block.get(), storage.data(), kept);
    }
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(block));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
};

} // namespace simulated
