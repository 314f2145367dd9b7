#include "plan/exact_collective.hpp"

#include <fmt/format.h>

#include <utility>

#include "nvlsim/plan/network_demand.hpp"

namespace nvlsim {
namespace {

class message_builder {
 public:
  message_builder(const platform& hardware, const ideal_network& net, collective c, std::string_view algorithm,
                  int ranks)
      : hardware_(hardware), net_(net), kind_(c), halving_(algorithm == "halving_doubling"), ranks_(ranks) {
    for (int i = 0; i < ranks; ++i) {
      plan_.classes.push_back({fmt::format("rank {}", i), 1, {{stream_kind::data_parallel, {}}}});
    }
    arrived_.assign(static_cast<std::size_t>(ranks), no_event);
  }

  void add_split(const std::vector<message_rounds>& all) {
    if (!plan_.templates.empty()) meet();
    if (net_.endpoint > seconds{}) everywhere(delay("endpoint", net_.endpoint));
    int round = 0;
    for (const message_rounds& r : all) {
      const std::int32_t send = message(r.message);
      const seconds after = after_message(net_, r);
      const std::int32_t receive = after > seconds{} ? delay(r.reduces ? "reduce" : "copy", after) : -1;
      for (int i = 0; i < r.count; ++i, ++round) {
        send_round(send, round);
        if (receive >= 0) everywhere(receive);
      }
    }
  }

  plan take() { return std::move(plan_); }

 private:
  stream& of(int rank) { return plan_.classes[static_cast<std::size_t>(rank)].streams.front(); }
  event_id& arrived(int rank) { return arrived_[static_cast<std::size_t>(rank)]; }

  /// The receiver of the message of a rank in a round; -1 if it sends none.
  int receiver(int rank, int round) const {
    if (halving_) {
      // Halving begins with the most distant partner; doubling goes back in reverse order.
      const int doublings = log2_ranks();
      if (kind_ == collective::all_gather) return rank ^ (1 << round);
      const int distance = round < doublings ? ranks_ >> (round + 1) : 1 << (round - doublings);
      return rank ^ distance;
    }
    if (kind_ == collective::broadcast) {
      const int chunk = round - rank;
      return rank + 1 < ranks_ && chunk >= 0 && chunk < ranks_ ? rank + 1 : -1;
    }
    return (rank + (kind_ == collective::all_to_all ? round + 1 : 1)) % ranks_;
  }

  int log2_ranks() const {
    int n = 0;
    while (1 << (n + 1) <= ranks_) ++n;
    return n;
  }

  /// A message waits for the message received in the previous round.
  void send_round(std::int32_t template_index, int round) {
    std::vector<event_id> next(arrived_.size(), no_event);
    for (int i = 0; i < ranks_; ++i) {
      const int to = receiver(i, round);
      if (to < 0) continue;
      const event_id e = plan_.new_event();
      plan_.append(of(i), template_index, {std::exchange(arrived(i), no_event)}, e, {round, to});
      next[static_cast<std::size_t>(to)] = e;
    }
    for (std::size_t i = 0; i < next.size(); ++i)
      if (next[i] != no_event) arrived_[i] = next[i];
  }

  /// Keeps all ranks in step, including those that received nothing.
  void everywhere(std::int32_t template_index) {
    for (int i = 0; i < ranks_; ++i) plan_.append(of(i), template_index, {std::exchange(arrived(i), no_event)});
  }

  /// A split begins when the previous one has ended on all ranks.
  void meet() {
    const event_id all = plan_.new_event(ranks_);
    const std::int32_t nothing = delay("next split", {});
    for (int i = 0; i < ranks_; ++i) {
      plan_.append(of(i), nothing, {arrived(i)}, all);
      arrived(i) = all;
    }
  }

  std::int32_t delay(const char* name, seconds t) {
    return plan_.add_template({name, {{part_kind::dp, name, t, 1}}, {}, {}});
  }

  std::int32_t message(bytes b) {
    const seconds t = message_time(net_, b);
    operation_template w{"message", {{part_kind::dp, "message", t, 1}}, {}, {}};
    // The last of several hops is at the port of the receiver.
    w.network = {demand_on(hardware_, {t, t - b / net_.rate, {{b, b}, {}}})};
    return plan_.add_template(std::move(w));
  }

  const platform& hardware_;
  const ideal_network& net_;
  collective kind_;
  bool halving_;
  int ranks_;
  plan plan_;
  std::vector<event_id> arrived_;  ///< by rank: arrival of the last message, if no operation waits for it yet
};

}  // namespace

plan plan_messages(const platform& hardware, const ideal_network& net, const ideal_call& c) {
  message_builder b(hardware, net, c.kind, c.algorithm, c.ranks);
  const std::vector<message_rounds> rounds = ideal_rounds(net, c.kind, c.algorithm, c.size, c.ranks);
  for (int i = 0; i < net.splits && c.ranks > 1; ++i) b.add_split(rounds);
  return b.take();
}

}  // namespace nvlsim
