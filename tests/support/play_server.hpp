// Servers played by the event queue, with prices of the test's own.
#pragma once

#include <type_traits>
#include <utility>

#include "nvlsim/serving/server.hpp"

namespace nvlsim::test {

/// `price` takes an iteration, or the worker and the iteration.
template <class Price>
serving_outcome serve_requests(const request_list& list, const server_settings& s, Price price) {
  server_case c{list, s,
                [price](std::size_t worker, const iteration& it) -> iteration_price {
                  if constexpr (std::is_invocable_v<Price, std::size_t, const iteration&>)
                    return price(worker, it);
                  else return price(it);
                },
                1};
  return std::move(serve_by_queue({c}).outcomes.front());
}

/// Requests of these lengths that are there at the start, or that clients send.
inline request_list requests_of(const request_lengths& lengths) {
  request_list out;
  for (const auto& [input, output] : lengths) {
    served_request r;
    r.input = input;
    r.output = output;
    out.requests.push_back(r);
  }
  return out;
}

}  // namespace nvlsim::test
