// The loader of WindowData: windows on pictures, drawn as background and foreground (Girshick et
// al., "Rich feature hierarchies", 2014, section 2.3).
#pragma once

#include "feed/loaders.h"

namespace crema {

/// Each batch begins with background windows (overlap below bg_threshold, label 0), and ends with
/// fg_fraction of it drawn from the foreground (fg_threshold and above), all with replacement. A
/// window is widened by context_pad pixels of the result (and to a square where crop_mode says so),
/// warped to crop_size, mirrored by lot; (pixel - mean) scale, 0 beyond the picture. The middle of
/// the mean file counts. Throws Error for bad fields, a bad file, or where windows to draw from are
/// missing.
std::unique_ptr<RecordLoader> make_window_loader(const WindowDataParameter& param,
                                                 const LoaderOptions& options);

}  // namespace crema
