// Plumbline for programs: what the command `plumbline` predicts, as values.
//
// All of it stands here; no other header is needed. Functions print nothing, end no process, and
// return errors of input as values. They throw std::bad_alloc, std::logic_error for a bug of
// Plumbline's own, and what a progress function of the caller throws. A value never changes after
// it was made, so several threads may use it at once. Times are in seconds, or in whole nanoseconds
// where a name ends in `_ns`. Bytes are bytes.
//
// docs/how-to/library.md has complete programs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace plumbline {
// Plumbline's own sources have other names in namespace plumbline. For them alone, v1 is not
// inline.
#ifdef PLUMBLINE_OWN_SOURCES
namespace v1 {
#else
inline namespace v1 {
#endif

/// The version of the library: "0.1.0".
std::string version();

// Errors.

/// The kind of a fault.
enum class Fault {
  input,       ///< A wrong scenario or a wrong argument.
  file,        ///< A file cannot be read.
  infeasible,  ///< The input is well formed, but cannot run: a deadlock, too little memory for
               ///< any choice.
  no_device,   ///< It asks for a device or a backend that is not here.
  stopped,     ///< A progress function gave up.
};

/// One fault, and its place.
struct Problem {
  Fault fault = Fault::input;
  std::string file;     ///< As it was given; "<setting>", "<condition>"; "" = no file.
  int line = 0;         ///< Counted from 1; 0 = the file as a whole.
  int column = 0;       ///< Counted from 1.
  std::string message;  ///< One sentence without a full stop.
  std::string help;     ///< What to do; "" = nothing to add.
};

/// All faults of an input. There is at least one.
struct Error {
  std::vector<Problem> problems;
  std::string text;  ///< As the command prints them, with the lines of the file.
};

/// A value, or an error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  /// Requires: there is a value.
  const T& operator*() const& { return std::get<0>(state_); }
  T& operator*() & { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  const T* operator->() const { return &std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  /// Requires: there is no value.
  const Error& error() const& { return std::get<1>(state_); }
  Error error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

// Scenarios.

/// Settings of the command line, `key=value`: "schedule.micro_batches=8". The value is YAML. In
/// sweep() and search() a key may have several values: "schedule.name=gpipe,1f1b".
using Settings = std::vector<std::string>;

/// What is read: a scenario's file, a bare config.json, or a text in memory.
struct Input {
  Input(std::string file) : path(std::move(file)) {}
  Input(const char* file) : path(file) {}
  /// YAML or JSON. `name` stands in errors for the name of a file. Files that the text names are
  /// relative to `folder`; "" = the current one.
  static Input of_text(std::string text, std::string name = "<text>", std::string folder = "");

  std::string path;  ///< Of the file; the name of a text.
  std::optional<std::string> text;
  std::string folder;
};

/// A scenario that was read and checked.
class Scenario {
 public:
  const std::string& name() const;
  /// What reading assumed or left out, a sentence each.
  const std::vector<std::string>& notes() const;

  struct Inside;
  explicit Scenario(std::shared_ptr<const Inside> inside) : inside_(std::move(inside)) {}
  const Inside& inside() const { return *inside_; }

 private:
  std::shared_ptr<const Inside> inside_;
};

/// Reads a scenario and the files that it names. Errors: all faults of the scenario; then all
/// faults of its files.
Result<Scenario> load(const Input& input, const Settings& settings = {});

/// The same scenario with its open choices made: a partition that is to be planned, recomputation
/// that is to fit, an order that is to be found. predict() does this by itself. Errors: no choice
/// is possible.
Result<Scenario> resolve(const Scenario& scenario);

// Predictions.

/// The idle time of a device by its cause, in seconds. The causes add up to the idle time.
struct IdleTimes {
  double fill = 0;        ///< Before its first activity.
  double drain = 0;       ///< After its last one.
  double dependency = 0;  ///< For an input that another device had not made yet.
  double transfer = 0;    ///< For an input that was on its way.
  double all_reduce = 0;  ///< For the gradients or weights of replicas and copies.
  double rendezvous = 0;  ///< For the other end of a blocking transfer.
  double update = 0;      ///< For the updates of other devices.
  double overhead = 0;    ///< Time per iteration that belongs to no device.
};

/// The memory of a device at its peak, in bytes by use.
struct Memory {
  std::int64_t weights = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
  std::int64_t activations = 0;
  std::int64_t stash = 0;      ///< Older versions of the weights.
  std::int64_t buffers = 0;    ///< Received tensors.
  std::int64_t temporary = 0;  ///< The most that the backward of one layer holds besides.
};

/// One device of a run.
struct Device {
  std::uint32_t device = 0;           ///< Its number, as the scenario counts devices.
  std::vector<std::uint32_t> stages;  ///< Its stages, ascending.
  double busy_s = 0;
  double idle_s = 0;
  double bubble_fraction = 0;  ///< idle / (busy + idle).
  IdleTimes idle_by_cause_s;
  std::int64_t peak_memory_bytes = 0;
  Memory memory;                     ///< The parts of the peak.
  std::string peak_op;               ///< The op at the peak: "0F3".
  std::uint32_t peak_in_flight = 0;  ///< The most micro-batches whose backward is open.
  std::uint32_t weight_versions = 1;
  std::optional<bool> fits;  ///< Nothing if the scenario gives no memory size.
};

/// The ops of a run in columns: by device, and on each device in their order. Entry i of every
/// column belongs to op i. All columns have the same length. They are part of the run, and valid as
/// long as a copy of it lives.
struct Ops {
  std::span<const std::uint32_t> device;
  std::span<const std::uint32_t> stage;
  std::span<const std::uint32_t> micro_batch;  ///< Numbered through the run; of a U, the last one
                                               ///< that it covers.
  std::span<const char> kind;  ///< F, B, I (gradient of the input), W (of the weights), U (update).
  std::span<const std::int64_t> begin_ns;
  std::span<const std::int64_t> end_ns;

  std::size_t size() const { return kind.size(); }
};

/// The transfers of a run in columns, by the time at which they begin, as valid as Ops. Sends of
/// collectives are not among them.
struct Transfers {
  std::span<const std::uint32_t> from;         ///< The sending device.
  std::span<const std::uint32_t> to;           ///< The receiving device.
  std::span<const std::uint32_t> stage;        ///< Of the op that waits for it.
  std::span<const std::uint32_t> micro_batch;  ///< Of the same op.
  std::span<const char> kind;                  ///< F: activations, B: gradients.
  std::span<const std::int64_t> bytes;
  std::span<const std::int64_t> begin_ns;
  std::span<const std::int64_t> end_ns;  ///< When the data has arrived.

  std::size_t size() const { return kind.size(); }
};

/// The memory of a device over time: from time_ns[i] on it holds bytes[i]. The times ascend; of
/// equal ones the last entry is what it holds from there on. Temporary tensors and stashed weights
/// count at their most. The largest entry is the peak.
struct MemoryCurve {
  std::vector<std::int64_t> time_ns;
  std::vector<std::int64_t> bytes;
};

/// A stretch of the critical path. The stretches follow each other without a gap.
struct PathStretch {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::string where;              ///< "device 2", "link 0-1", "overhead".
  std::vector<std::string> what;  ///< The activities that take the time: "1F0", "recv 2F0".
};

/// A time that could be made shorter. Let x be the share by which it becomes shorter. The
/// iteration becomes shorter by gain_s for each whole of x, as long as x is below `until`.
struct Lever {
  std::string what;  ///< "B of stage 2", "latency of link 0-1".
  double now_s = 0;  ///< The time of one op or transfer.
  double gain_s = 0;
  std::optional<double> until;  ///< Nothing if it was not computed.
  std::optional<double>
      least_s;  ///< The iteration time if it took no time; nothing if it was not computed.
};

/// The same stages and costs in the order of another schedule.
struct OtherSchedule {
  std::string schedule;
  std::optional<double> iteration_time_s;  ///< Nothing if it cannot run.
  std::int64_t peak_memory_bytes = 0;      ///< Of the device that needs most.
  std::optional<bool> fits;                ///< Nothing if the scenario gives no memory size.
  std::string why_not;                     ///< Why it cannot run; "" = it can.
};

/// Why a run takes its time.
class Explanation {
 public:
  std::vector<PathStretch> critical_path;
  std::vector<Lever> levers;             ///< Those with the greatest gain first.
  std::vector<OtherSchedule> schedules;  ///< The fastest first.
  std::string json;                      ///< As `explain --json` prints it.

  /// The tables that `explain` prints; 0 = as wide as they are. "" for one that was not made by
  /// Run::explain().
  std::string text(std::size_t width = 100) const;

  struct Inside;
  std::shared_ptr<const Inside> inside;  ///< What text() needs.
};

/// A predicted run.
class Run {
 public:
  const std::string& name() const;      ///< Of the scenario.
  const std::string& schedule() const;  ///< "1f1b"; the file's name if a file gives the order.
  std::uint32_t stages() const;
  std::uint32_t micro_batches() const;  ///< In one mini-batch of one copy.
  std::uint32_t mini_batches() const;

  double iteration_time_s() const;                         ///< Of one mini-batch.
  double makespan_s() const;                               ///< Of the whole run.
  std::optional<double> throughput_samples_per_s() const;  ///< Nothing if the run takes no time.
  double bubble_fraction() const;                          ///< Idle / (devices x makespan).
  double bubble_overhead() const;                          ///< Idle / busy.
  std::optional<double> steady_bubble_fraction() const;    ///< For asynchronous schedules.
  std::optional<double> formula_bubble_fraction() const;   ///< By a closed form, if one holds.
  double communication_stall_fraction() const;  ///< The device time that waits for the network.
  /// The times between which most such runs lie; nothing where no published run says so.
  std::optional<std::pair<double, double>> likely_iteration_time_s() const;
  std::int64_t peak_memory_bytes() const;  ///< Of the device that needs most.
  std::optional<bool> fits() const;        ///< Nothing if the scenario gives no memory size.
  std::string shortage() const;            ///< Which device lacks how much; "" = none.
  const std::vector<std::string>& estimated()
      const;  ///< How numbers that were not measured were derived.
  const std::vector<std::string>& notes() const;

  const std::vector<Device>& devices() const;
  const Ops& ops() const;
  const Transfers& transfers() const;
  /// Errors: the device holds no stage.
  Result<MemoryCurve> memory(std::uint32_t device) const;

  /// A number by its name in JSON, "peak_memory_bytes"; nothing if this run has none. Errors: no
  /// such name.
  Result<std::optional<double>> number(const std::string& name) const;
  /// Whether it meets a condition: "iteration_time_s < 41 ms", "fits == yes". A number that the run
  /// does not have meets none. Errors: no such name, no operator, a value that is none.
  Result<bool> meets(const std::string& condition) const;

  /// Why it takes its time. For the times of other schedules the files of the scenario are read
  /// again.
  Explanation explain() const;
  /// Why an op runs when it does: "1F3". Errors: no such op.
  Result<std::string> why(const std::string& op, std::size_t width = 100) const;

  std::string text(
      std::size_t width = 100) const;  ///< As `simulate` prints it; 0 = as wide as it is.
  std::string json() const;            ///< As `simulate --json` prints it.
  std::string html() const;          ///< A page for a browser, which loads nothing from elsewhere.
  std::string chrome_trace() const;  ///< For Perfetto.
  std::string order_csv() const;     ///< The order of the ops, as PyTorch reads it.

  struct Inside;
  explicit Run(std::shared_ptr<const Inside> inside) : inside_(std::move(inside)) {}
  const Inside& inside() const { return *inside_; }

 private:
  std::shared_ptr<const Inside> inside_;
};

/// Predicts a run. A run that does not fit the memory is no error: see Run::fits(). Errors: those
/// of resolve(); an order that is a deadlock; a run that is too long for 64 bits.
Result<Run> predict(const Scenario& scenario);

// Many predictions.

/// A column of a table. Either `numbers` or `texts` has its values.
struct Column {
  std::string name;  ///< "iteration_time_s", "schedule.name".
  std::string
      unit;  ///< "s", "B", "FLOP/s", "1/s", "fraction", "count", "truth" (1 or 0); "" for texts.
  std::vector<double> numbers;  ///< NaN = this row has none.
  std::vector<std::string> texts;
};

/// How work is done.
struct Work {
  /// Freed memory stays with the process, for malloc as a whole: sweeps of long runs take a fifth
  /// of the time.
  bool keep_freed_memory = true;
  unsigned threads = 0;  ///< 0 = one for each core.
  /// Once it is set, no further work begins. Null = never.
  const std::atomic<bool>* stop = nullptr;
  /// Told after each prediction; one thread calls at a time.
  std::function<void(std::uint64_t done, std::uint64_t count)> progress = {};
};

/// Which rows are kept, and their order.
struct Selection {
  /// What is best: throughput, per-device, memory, bubble, cost, days, energy or goodput.
  std::string objective = "throughput";
  std::vector<std::string> where =
      {};                  ///< Conditions, all of which hold: "peak_memory_bytes < 80 GB".
  std::size_t top = 0;     ///< The number of rows; 0 = all.
  std::string front = {};  ///< Only rows that no other beats: "memory", or "cost,days"; "" = all.
  bool distinct = false;   ///< search(): only the best layout of each tensor, context, expert and
                           ///< pipeline size.
};

/// The rows of a sweep or of a search, the best first. The last rows of a sweep are those that do
/// not fit or cannot run.
class Rows {
 public:
  std::size_t size() const;
  const std::vector<Column>& columns() const;
  /// The settings of a row: load() with them gives its scenario. Requires: row < size().
  const Settings& settings(std::size_t row) const;
  /// Why a row does not fit or cannot run; "" = it can. Requires: row < size().
  const std::string& reason(std::size_t row) const;
  std::uint64_t done() const;    ///< Predictions that were made, also of rows that are not kept.
  std::uint64_t wanted() const;  ///< All that there are.
  bool stopped() const;          ///< Work::stop was set before all were done.
  const std::vector<std::string>& remarks() const;

  std::string text(std::size_t width = 100) const;
  std::string csv() const;
  std::string json() const;
  std::string html() const;

  struct Inside;
  explicit Rows(std::shared_ptr<const Inside> inside) : inside_(std::move(inside)) {}

 private:
  std::shared_ptr<const Inside> inside_;
};

/// Predicts every combination of the settings' values, and of those in the scenario's `sweep`
/// section. The rows do not depend on the number of threads. Errors: those of load() at every
/// point; no key with several values; a selection with an unknown name.
Result<Rows> sweep(const Input& input, const Settings& settings, const Selection& selection = {},
                   const Work& work = {});

/// Predicts every layout over the scenario's devices: all values of the keys that it leaves open.
/// `free` leaves open the keys of the layout that it gives, too. Errors: those of load() for
/// every layout; no devices, no mini-batch size.
Result<Rows> search(const Input& input, const Settings& settings = {},
                    const Selection& selection = {}, bool free = false, const Work& work = {});

// Plans and orders.

/// The limits of a plan.
struct PlanLimits {
  bool straight = false;              ///< One replica for each stage.
  std::uint32_t devices_at_most = 0;  ///< 0 = all of the cluster.
  std::uint32_t candidates = 0;       ///< How many are simulated; 0 = as the scenario says.
  /// Told from time to time, with the finished share of the current step; false = give up.
  std::function<bool(double)> progress = {};
};

/// A stage of a plan.
struct PlanStage {
  std::vector<std::string> layers;  ///< Their names.
  std::vector<std::uint32_t> devices;
  std::uint32_t replicas = 1;
  double compute_s = 0;  ///< F + B of one micro-batch on one replica, and its part of a U.
  std::uint32_t warm_up = 0;
  std::int64_t peak_memory_bytes = 0;  ///< Simulated: of its fullest device.
};

/// A plan.
struct Plan {
  std::string config;  ///< "15-1": the replicas of each stage.
  std::vector<PlanStage> stages;
  double time_per_micro_batch_s = 0;  ///< Simulated.
  double formula_s = 0;               ///< The same by the planner's formula.
  std::optional<bool> fits;           ///< Nothing if the scenario gives no memory size.
  std::string yaml;                   ///< A plan section, for plan.file.
  std::string json;                   ///< As `plan --json` prints it.
  std::string text;                   ///< As `plan` prints it, 100 columns wide.
};

/// Chooses stages, replicas, devices and warm-ups, whatever partition the scenario names. Errors:
/// a schedule or a cluster that cannot be planned for; no plan fits; given up.
Result<Plan> plan(const Scenario& scenario, const PlanLimits& limits = {});

/// The time of an order.
struct TimedOrder {
  std::string name;
  double time_s = 0;  ///< From the first op to the last; without a flush the period.
  bool fits = true;
};

/// An order that was found for the costs of a scenario.
struct Order {
  double time_s = 0;   ///< From the first op to the last; without a flush the period.
  double bound_s = 0;  ///< No order within this memory is faster.
  double gap = 0;      ///< time_s / bound_s - 1.
  std::int64_t peak_memory_bytes = 0;  ///< Of its fullest device.
  std::vector<TimedOrder> named;  ///< Published schedules with the same costs, the fastest first.
  std::string csv;                ///< The ops, as PyTorch reads them.
  std::string lowered_csv;        ///< The same with SEND and RECV.
  std::string json;               ///< As `order --json` prints it.
  std::string text;               ///< As `order` prints it.
};

/// Finds the best order for a scenario's costs, on the devices of its own schedule. Errors: those
/// of load(); an order that schedule.file gives; too little memory for one micro-batch. Once `stop`
/// is set, it gives up; null = never.
Result<Order> order(const Input& input, const Settings& settings = {},
                    const std::atomic<bool>* stop = nullptr);

}  // namespace v1
}  // namespace plumbline
