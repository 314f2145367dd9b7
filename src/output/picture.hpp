// Pictures for a terminal.
#pragma once

#include <string>
#include <vector>

namespace nvlsim {

/// A point of a picture; `mark` is one column wide. Later points cover earlier ones.
struct picture_point {
  double x = 0, y = 0;
  char mark = '*';
};

struct picture_frame {
  std::string x_name, y_name;
  bool x_log = false, y_log = false;
  std::size_t columns = 76, rows = 16;  ///< of all, with the axes
};

/// A scatter plot with round ticks; points that are not finite, or not positive on a logarithmic axis, are left
/// out. Empty if no point is left.
std::string picture_of(const std::vector<picture_point>& points, const picture_frame& frame);

}  // namespace nvlsim
