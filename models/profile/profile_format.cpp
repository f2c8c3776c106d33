// The table of a profile file.
//
// SPDX-License-Identifier: MIT
#include "models/profile/profile_format.h"

#include "models/profile/layer_format.h"
#include "models/profile/op_format.h"

namespace plumbline {
namespace {

using namespace format;

KeyFormat batch_key() {
  return {"batch", {count(1)}, "The samples that one forward in these times covers."};
}

}  // namespace

const SectionFormat& provenance_format() {
  static const SectionFormat provenance = {
      .name = "provenance",
      .text = "Where the numbers come from: any keys with a text each.",
      .keys = {{"source", {text(), nothing()}, "How they were had: measured, estimated, invented."},
               {"optimizer", {text(), nothing()}, "The optimizer whose updates were measured."}},
      .other_keys = {text(), nothing()}};
  return provenance;
}

const SectionFormat& measurement_format() {
  static const SectionFormat measurement = [] {
    SectionFormat built = {.name = "measurement",
                           .text = "The layers as they were measured at one batch size.",
                           .keys = {batch_key(), layers_key()}};
    for (KeyFormat& key : built.keys) key.required = true;
    return built;
  }();
  return measurement;
}

const SectionFormat& block_format() {
  static const SectionFormat block = {
      .name = "block",
      .text = "Layers that were also timed as one piece, to see whether their times add up.",
      .keys = {{.name = "layers",
                .values = {list({text()})},
                .text = "The names of the layers.",
                .required = true},
               {.name = "forward",
                .values = {duration()},
                .text = "The time of their forward.",
                .required = true},
               {.name = "backward",
                .values = {duration()},
                .text = "The time of their backward.",
                .required = true}}};
  return block;
}

const SectionFormat& busy_transfers_format() {
  static const SectionFormat busy = {
      .name = "busy_transfers",
      .text = "The times of transfers while other devices compute.",
      .keys = {{.name = "workers",
                .values = {count(1, 10'000)},
                .text = "The number of devices that computed meanwhile, beside the two between "
                        "which the transfers went.",
                .required = true},
               {.name = "table",
                .values = {list({list({bytes(), duration()}, 2, 2)}, 1)},
                .text = "Pairs of a size and the time that it took, as in the link's own table.",
                .required = true}}};
  return busy;
}

const SectionFormat& measured_link_format() {
  static const SectionFormat link = {
      .name = "measured_link",
      .text = "A link as it was measured.",
      .keys = {{"kind",
                {text()},
                "What the link is, such as copy; `blocking copy` where its transfers hold the "
                "streams of both ends."},
               {"latency", {duration()}, "What a transfer takes beside its bytes.", "0 us"},
               {"bandwidth", {bandwidth()}, "Its bandwidth; absent: unlimited."},
               {"table",
                {list({list({bytes(), duration()}, 2, 2)})},
                "Pairs of a size and the time that it took: [1 MiB, 95 us]. `link: measured` looks "
                "sizes up here, and takes the line of latency and bandwidth beyond the table."},
               {"busy",
                {list({section(&busy_transfers_format)})},
                "The same while other devices compute, by their number. A prediction takes the "
                "time for as many as compute just then."}}};
  return link;
}

const SectionFormat& slowdown_format() {
  static const SectionFormat slowdown = {
      .name = "slowdown",
      .text = "For a kind of layer, the factors of its time with 0, 1, 2, ... active neighbours.",
      .keys =
          {{"update",
            {list({real(1000)})},
            "The factors of updates behind a flush, while 0, 1, 2, ... neighbours update, too."}},
      .other_keys = {list({real(1000)})}};
  return slowdown;
}

const SectionFormat& in_flight_format() {
  static const SectionFormat in_flight = {
      .name = "in_flight",
      .text =
          "For a kind of layer, the factors of its forward and backward with 1, 2, 3, ... "
          "micro-batches in flight on the device; the last one holds for all more.",
      .keys = {},
      .other_keys = {list({real(1000)})}};
  return in_flight;
}

const SectionFormat& algorithms_format() {
  static const SectionFormat algorithms = {
      .name = "algorithms",
      .text =
          "For what a library computes, the algorithm that it was measured with, as it is "
          "written by calibrate.",
      .keys = {},
      .other_keys = {text()}};
  return algorithms;
}

const SectionFormat& profile_format() {
  static const SectionFormat profile = {
      .name = "profile",
      .text = "A profile: what the layers of a model cost.",
      .keys =
          {{.name = "version",
            .values = {count(1, 1)},
            .text = "The version of the format.",
            .required = true},
           {.name = "kind",
            .values = {word("profile")},
            .text = "That this is a profile.",
            .required = true},
           {"model", {text()}, "The name of the model."},
           dtype_key(),
           group_key(),
           {"provenance", {section(&provenance_format), nothing()}, "Where the numbers come from."},
           batch_key(),
           layers_key(),
           {"measurements",
            {list({section(&measurement_format)}, 1)},
            "Several batch sizes, each with the same layers in the same order; in the place of "
            "batch and layers."},
           edges_key(),
           ops_key(),
           {"blocks",
            {list({section(&block_format)})},
            "Layers that were also timed as one piece."},
           {"overheads", {section(&overheads_format)}, "What ops and transfers take beside."},
           {"links",
            {list({section(&measured_link_format)})},
            "Links that were measured; `link: measured` takes the first, or the first one whose "
            "kind begins with `blocking` where transfers block."},
           {"slowdown", {section(&slowdown_format)}, "How neighbours slow a layer down."},
           {"in_flight",
            {section(&in_flight_format)},
            "How the number of micro-batches in flight changes a layer's times."},
           {"algorithms",
            {section(&algorithms_format)},
            "What libraries were measured with; a run on such devices takes the same."}},
      .exactly_one = {"layers", "measurements"},
      .excludes = {{"measurements", "batch"}}};
  return profile;
}

}  // namespace plumbline
