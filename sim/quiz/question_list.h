// Which questions there are, and what makes each of them.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "sim/quiz/figures.h"
#include "sim/quiz/quiz.h"

namespace plumbline {

/// A question before its figures are drawn. `make` leaves id and page to the row.
struct QuestionRow {
  const char* id;
  int page;
  Question (*make)(Figures& figures);
};

/// All of them, by page.
std::span<const QuestionRow> question_list();

// bubble_questions.cpp
Question ask_naive_share(Figures& figures);
Question ask_naive_devices(Figures& figures);
Question ask_fill_least(Figures& figures);
Question ask_fill_share(Figures& figures);
Question ask_one_bubble(Figures& figures);
Question ask_in_flight(Figures& figures);
// order_questions.cpp
Question ask_order_time(Figures& figures);
Question ask_loop_order(Figures& figures);
Question ask_loop_index(Figures& figures);
// cost_questions.cpp
Question ask_fixed_cost(Figures& figures);
Question ask_balance(Figures& figures);
Question ask_latency_choice(Figures& figures);
// hybrid_questions.cpp
Question ask_ranks(Figures& figures);
Question ask_steps(Figures& figures);
// pipedream_questions.cpp
Question ask_versions(Figures& figures);
Question ask_two_versions(Figures& figures);
// schedule_questions.cpp
Question ask_twice_weights(Figures& figures);
Question ask_zero_bubble(Figures& figures);

}  // namespace plumbline
