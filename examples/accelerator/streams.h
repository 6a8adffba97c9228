// Faults, memory, queues and the current device and stream of the simulated accelerator. Needs nothing of ATen.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/util/Exception.h>

namespace torch::autograd {
TORCH_API int get_current_graph_task_id();
}

namespace simulated {

constexpr c10::DeviceIndex DEVICES = 2;
constexpr auto TYPE = c10::DeviceType::PrivateUse1;

inline std::string& fault() {
  static std::string name;
  return name;
}

inline bool faulty(const char* name) {
  return fault() == name;
}

inline bool in_backward() {
  return torch::autograd::get_current_graph_task_id() != -1;
}

// ---------------------------------------------------------------------------------------------------------- memory

// All bits set: NaN, -1, and a true that is not 1.
constexpr int GARBAGE = 0xFF;
constexpr size_t SMALLEST = 64;

// Blocks of the host, which are never given back to it: what reads a block too late finds garbage, and harms nobody.
class Blocks {
 public:
  void* take(size_t bytes) {
    if (bytes == 0) {
      return nullptr;
    }
    size_t size = SMALLEST;
    while (size < bytes) {
      size *= 2;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    auto& free = free_[size];
    void* block = nullptr;
    if (free.empty()) {
      TORCH_CHECK(posix_memalign(&block, SMALLEST, size) == 0, "the simulated accelerator has no memory left");
    } else {
      block = free.back();
      free.pop_back();
    }
    std::memset(block, GARBAGE, size);
    used_[block] = {size, 1};
    return block;
  }

  // Queued work keeps the block that it uses, not the storage: that dies when the caller is done with it.
  void* keep(void* block) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (block != nullptr) {
      ++used_.at(block).holders;
    }
    return block;
  }

  void give_back(void* block) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = used_.find(block);
    if (found == used_.end() || --found->second.holders > 0) {
      return;
    }
    auto size = found->second.size;
    std::memset(block, GARBAGE, size);
    free_[size].push_back(block);
    used_.erase(found);
  }

  bool holds(const void* address) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto next = used_.upper_bound(const_cast<void*>(address));
    if (next == used_.begin()) {
      return false;
    }
    auto [start, use] = *std::prev(next);
    return address < static_cast<char*>(start) + use.size;
  }

 private:
  struct Use {
    size_t size;
    int holders;
  };

  std::mutex mutex_;
  std::map<size_t, std::vector<void*>> free_;
  std::map<void*, Use> used_;
};

inline Blocks& device_blocks() {
  static auto* blocks = new Blocks;
  return *blocks;
}

inline Blocks& pinned_blocks() {
  static auto* blocks = new Blocks;
  return *blocks;
}

template <Blocks& (*blocks)()>
class Memory final : public c10::Allocator {
 public:
  explicit Memory(c10::Device device) : device_(device) {}

  c10::DataPtr allocate(size_t bytes) override {
    void* block = blocks().take(bytes);
    return {block, block, &release, device_};
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return &release;
  }

  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static void release(void* block) {
    blocks().give_back(block);
  }

  c10::Device device_;
};

inline c10::Allocator* memory(c10::DeviceIndex index) {
  static auto* both = new std::array<Memory<device_blocks>, DEVICES>{
      Memory<device_blocks>({TYPE, 0}), Memory<device_blocks>({TYPE, 1})};
  return &both->at(index);
}

inline c10::Allocator* pinned_memory() {
  static auto* pinned = new Memory<pinned_blocks>(c10::DeviceType::CPU);
  return pinned;
}

// ---------------------------------------------------------------------------------------------------------- queues

// A launch waits for the oldest work if so much is queued, as it does on a real device.
constexpr size_t LONGEST = 1024;

struct Queue {
  c10::DeviceIndex device = 0;
  std::deque<std::function<void()>> work;
  uint64_t issued = 0;
  std::atomic<uint64_t> done = 0;
};

// A place in a queue: all that was queued before.
struct Place {
  Queue* queue = nullptr;
  uint64_t position = 0;

  bool reached() const {
    return queue == nullptr || queue->done >= position;
  }
};

inline std::recursive_mutex& queues_mutex() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

// Streams by number; the first ones are the default streams of the devices, and none ever ends.
inline std::vector<std::unique_ptr<Queue>>& queues() {
  static auto* all = [] {
    auto* made = new std::vector<std::unique_ptr<Queue>>;
    for (c10::DeviceIndex index = 0; index < DEVICES; ++index) {
      made->push_back(std::make_unique<Queue>());
      made->back()->device = index;
    }
    return made;
  }();
  return *all;
}

// Carry out the work before a place. What it held is released without the lock: it may be Python's.
inline void carry_out(const Place& place) {
  std::vector<std::function<void()>> finished;
  std::lock_guard<std::recursive_mutex> lock(queues_mutex());
  while (!place.reached()) {
    Queue& queue = *place.queue;
    finished.push_back(std::move(queue.work.front()));
    queue.work.pop_front();
    ++queue.done;
    finished.back()();
  }
}

inline void enqueue(Queue& queue, std::function<void()> work) {
  Place oldest;
  {
    std::lock_guard<std::recursive_mutex> lock(queues_mutex());
    queue.work.push_back(std::move(work));
    ++queue.issued;
    if (queue.work.size() > LONGEST) {
      oldest = {&queue, queue.done + 1};
    }
  }
  carry_out(oldest);
}

inline Place end_of(Queue& queue) {
  std::lock_guard<std::recursive_mutex> lock(queues_mutex());
  return {&queue, queue.issued};
}

inline void make_wait(Queue& queue, const Place& place) {
  if (!place.reached() && place.queue != &queue) {
    enqueue(queue, [place] { carry_out(place); });
  }
}

inline void synchronize_device(c10::DeviceIndex device) {
  std::vector<Place> ends;
  {
    std::lock_guard<std::recursive_mutex> lock(queues_mutex());
    for (const auto& queue : queues()) {
      if (queue->device == device) {
        ends.push_back({queue.get(), queue->issued});
      }
    }
  }
  std::for_each(ends.begin(), ends.end(), carry_out);
}

// ------------------------------------------------------------------------------------- the current device and stream

// The fault guard_left: the device that a kernel of backward left current for all threads; -1 if none did.
inline std::atomic<c10::DeviceIndex>& left_device() {
  static std::atomic<c10::DeviceIndex> index{-1};
  return index;
}

// The thread that chose the fault; the others may be those of torch's engine.
inline std::thread::id& planter() {
  static std::thread::id id;
  return id;
}

inline c10::DeviceIndex& own_device() {
  thread_local c10::DeviceIndex index = 0;
  return index;
}

inline c10::DeviceIndex current_device() {
  auto left = left_device().load();
  return left >= 0 && !in_backward() ? left : own_device();
}

inline void set_device(c10::DeviceIndex index) {
  TORCH_CHECK(
      index >= 0 && index < DEVICES, "there is no device simulated:", static_cast<int>(index), ": choose 0 or 1");
  own_device() = index;
  if (std::this_thread::get_id() == planter()) {
    left_device() = -1;
  }
}

inline c10::DeviceIndex index_of(c10::Device device) {
  return device.has_index() ? device.index() : current_device();
}

// The memory of the device that is current when a storage is made.
class CurrentMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    return memory(current_device())->allocate(bytes);
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return memory(0)->raw_deleter();
  }

  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

inline c10::Stream stream(c10::DeviceIndex device, c10::StreamId number) {
  return c10::Stream(c10::Stream::UNSAFE, {TYPE, device}, number);
}

inline std::array<c10::StreamId, DEVICES>& current_streams() {
  thread_local std::array<c10::StreamId, DEVICES> numbers = {0, 1};
  return numbers;
}

inline c10::Stream current_stream(c10::DeviceIndex device) {
  auto unguarded = faulty("wrong_stream") && in_backward();
  return stream(device, unguarded ? device : current_streams().at(device));
}

inline Queue& queue_of(const c10::Stream& stream) {
  std::lock_guard<std::recursive_mutex> lock(queues_mutex());
  return *queues().at(stream.id());
}

inline Queue& current_queue(c10::DeviceIndex device) {
  return queue_of(current_stream(device));
}

inline c10::Stream new_stream(c10::DeviceIndex device) {
  std::lock_guard<std::recursive_mutex> lock(queues_mutex());
  queues().push_back(std::make_unique<Queue>());
  queues().back()->device = device;
  return stream(device, static_cast<c10::StreamId>(queues().size() - 1));
}

} // namespace simulated
