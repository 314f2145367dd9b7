// A search under way.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/analysis/compare.hpp"
#include "nvlsim/analysis/metrics.hpp"
#include "search/layout_keeper.hpp"
#include "search/search_space.hpp"

namespace nvlsim {

/// Replaces numbers by N so that reasons of one kind compare equal.
std::string kind_of(std::string_view reason);

/// A constraint. Constraints on parameters are checked before a layout is evaluated.
struct constraint {
  analysis::gate rule;
  bool on_parameter = false;
  std::size_t at = 0;
};

class searcher {
 public:
  searcher(const scenario& s, const search_options& o);
  search_result run();

 private:
  void read_ranking(diagnostics& problems);
  void read_constraints(diagnostics& problems);
  ranked_metric metric_named(const std::string& name, const char* option, diagnostics& problems) const;
  struct worker {
    keeper kept;
    pruning pruned;
    std::int64_t evaluated = 0;
    std::vector<std::size_t> tried = {};  ///< before the bounds

    void merge(worker& other) {
      kept.merge(other.kept);
      pruned.merge(other.pruned);
      evaluated += other.evaluated;
    }
  };
  /// Runs `body` in every thread, each with a worker of its own, and gives all of them together.
  worker in_threads(const std::function<void(worker&)>& body);
  void try_groups(worker& w);
  /// Whether its layouts could be tried.
  bool try_group(worker& w, std::size_t group);
  void refuse_group(worker& w, std::size_t group, const std::string& reason) const;
  void try_layout(worker& w, std::size_t group, std::size_t index, keeper* seen = nullptr) const;
  /// The constraint on parameters that a layout breaks, counted.
  const constraint* outside(worker& w, std::size_t group, std::size_t index) const;

  // By lower bounds: bounded_search.cpp.
  struct limits;
  bool can_bound() const;
  // Before the bounds: first_layouts.cpp. False if it was stopped.
  bool try_first(worker& all);
  void try_bounded_part(worker& w, floor_reader& floors, std::size_t group, std::size_t first) const;
  bool probe(worker& all, const std::vector<std::size_t>& groups, bool need_one,
             std::map<std::size_t, double>& taken);
  bool polish(worker& all, std::size_t group, double least_s);
  std::vector<std::size_t> promising(const std::vector<std::size_t>& groups, double least_s, std::size_t enough);
  bool already(std::size_t group, std::size_t index) const {
    const auto it = first_tried_.find(group);
    return it != first_tried_.end() && it->second.contains(index);
  }
  worker search_bounded();
  /// False if it was stopped.
  bool bound_groups(worker& all);
  limits limits_of(const keeper& kept) const;
  void try_bounded(worker& w, floor_reader& floors, const limits& known, std::size_t group) const;
  std::optional<double> least_share(const search_result& r) const;
  void add_bound(search_result& r) const;
  // By ceilings: in the same file.
  worker search_under_ceilings();
  void try_under_ceilings(worker& w, const keeper& known, std::size_t group);
  bool beaten(const keeper& known, std::size_t group, std::size_t index) const;
  /// Counts layouts that were tried, or shown to be worse, and those that cannot run.
  void report(std::int64_t more, std::int64_t refused = 0);
  const constraint* broken(const std::vector<value>& parameters) const;
  const constraint* broken(const candidate& c) const;
  search_result collect(worker& all);
  std::string example_of(const pruning::entry& e) const;
  std::string hint_for(const metric& m) const;

  const scenario& scenario_;
  const search_options& options_;
  std::unique_ptr<search_space> space_;
  ranking ranking_;
  std::vector<std::string> front_names_;
  std::string objective_;
  bool smaller_ = true;
  std::vector<constraint> constraints_;
  bool parameter_constraints_ = false;
  bool in_full_ = false;            ///< evaluate all metrics, because a slow one is used
  std::vector<std::size_t> order_;  ///< order in which groups are visited
  std::atomic<std::size_t> next_ = 0;
  std::mutex reporting_;
  std::int64_t candidates_ = 0, done_ = 0, refused_ = 0;
  std::map<std::size_t, std::set<std::size_t>> first_tried_;  ///< layouts by group, before the bounds
  std::vector<double> floor_;                  ///< least seconds by group; infinite for those that cannot run
  std::size_t seconds_at_ = 0, bytes_at_ = 0;  ///< metrics that bounds are of
  bool bounds_bytes_ = false;                  ///< memory is a metric of the front
  std::optional<double> untried_s_;            ///< no layout that was not tried takes less
};

}  // namespace nvlsim
