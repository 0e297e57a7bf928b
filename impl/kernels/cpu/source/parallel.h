// A loop shared by threads, and memory that each thread keeps between calls.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

namespace inferspec {

// Threads that sleep until there is a loop to share. Never destroyed: a process may end while they sleep.
class Pool {
   public:
    static Pool& instance() {
        static std::once_flag registered;
        std::call_once(registered, [] { pthread_atfork(nullptr, nullptr, [] { current() = new Pool; }); });
        return *current();
    }

    // Calls work(context, index) once for each index below count, on so many threads, this one among them. Where other
    // Python threads have the pool just now, this one does it alone.
    void run(int threads, size_t count, void (*work)(const void*, size_t), const void* context) {
        std::unique_lock<std::mutex> owner(busy_, std::try_to_lock);
        if (threads < 2 || count < 2 || !owner.owns_lock()) {
            for (size_t index = 0; index < count; ++index) work(context, index);
            return;
        }
        int helpers = static_cast<int>(std::min<size_t>(threads, count)) - 1;
        {
            std::lock_guard<std::mutex> guard(lock_);
            helpers = std::min(helpers, start(helpers));
            work_ = work, context_ = context, count_ = count, helpers_ = helpers;
            next_ = 0;
            unfinished_ = helpers;
            ++round_;
        }
        wake_.notify_all();
        take();
        std::unique_lock<std::mutex> guard(lock_);
        done_.wait(guard, [this] { return unfinished_ == 0; });
    }

   private:
    static Pool*& current() {
        static Pool* pool = new Pool;
        return pool;
    }

    // Has so many threads wait for loops, or as many as the system allows; returns how many there are.
    int start(int helpers) {
        try {
            for (; started_ < helpers; ++started_) {
                std::thread([this, number = started_] { serve(number); }).detach();
            }
        } catch (const std::system_error&) {
        }
        return started_;
    }

    void take() {
        for (size_t index; (index = next_.fetch_add(1)) < count_;) work_(context_, index);
    }

    void serve(int number) {
        uint64_t seen = 0;
        for (;;) {
            {
                std::unique_lock<std::mutex> guard(lock_);
                wake_.wait(guard, [&] { return round_ != seen && number < helpers_; });
                seen = round_;
            }
            take();
            std::lock_guard<std::mutex> guard(lock_);
            if (--unfinished_ == 0) done_.notify_one();
        }
    }

    std::mutex busy_, lock_;
    std::condition_variable wake_, done_;
    void (*work_)(const void*, size_t) = nullptr;
    const void* context_ = nullptr;
    size_t count_ = 0;
    std::atomic<size_t> next_{0};
    int helpers_ = 0, started_ = 0, unfinished_ = 0;
    uint64_t round_ = 0;
};

// Calls body(index) once for each index below count, on so many threads. The body must not throw, nor share a loop itself.
template <typename Body>
void parallel_for(int threads, size_t count, const Body& body) {
    if (threads < 2 || count < 2) {
        for (size_t index = 0; index < count; ++index) body(index);
        return;
    }
    Pool::instance().run(
        threads, count, [](const void* context, size_t index) { (*static_cast<const Body*>(context))(index); }, &body);
}

// The indices [first, last) of the part `number` of `parts` nearly equal ones, whose ends are multiples of `step`.
inline std::pair<size_t, size_t> share(size_t count, size_t parts, size_t number, size_t step = 1) {
    const size_t steps = (count + step - 1) / step;
    const size_t first = steps * number / parts * step, last = steps * (number + 1) / parts * step;
    return {std::min(first, count), std::min(last, count)};
}

// Memory of one thread for one purpose (a slot is known by its Purpose type), aligned to 64 bytes, uninitialised, and
// kept until the thread asks for more. Throws std::bad_alloc.
template <typename Purpose, typename T>
T* scratch(size_t count) {
    static_assert(std::is_trivial_v<T>);
    struct Release {
        void operator()(void* memory) const { std::free(memory); }
    };
    thread_local std::unique_ptr<void, Release> memory;
    thread_local size_t size = 0;
    const size_t bytes = (count * sizeof(T) + 63) / 64 * 64;
    if (size < bytes) {
        memory.reset();
        size = 0;
        memory.reset(std::aligned_alloc(64, bytes));
        if (!memory) throw std::bad_alloc();
        size = bytes;
    }
    return static_cast<T*>(memory.get());
}

}  // namespace inferspec
