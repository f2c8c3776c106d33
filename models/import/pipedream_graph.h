// Reading a PipeDream profile (`graph.txt`) as a model.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "base/diagnostic.h"
#include "models/profile/profile.h"

namespace plumbline {

/// Reads the node and edge lines of a PipeDream profile: times in milliseconds for one mini-batch,
/// sizes in bytes. Input nodes (data loading) and their edges are left out, and the stages of nodes
/// are not used. Notes of the model say so where Input nodes have costs or nodes have stages.
/// Layers that only pass on or overwrite their input (View, Size, `__getitem__`, in-place ones)
/// keep no activation of their own. The file does not give the batch, so the measurement's batch is
/// unknown. Errors: lines of another form, a repeated or unknown node, a bad number or stage, a
/// cycle, no layer.
Result<Model> parse_pipedream_graph(const std::shared_ptr<const Source>& source);

/// The same from a file.
Result<Model> read_pipedream_graph(const std::string& path);

}  // namespace plumbline
