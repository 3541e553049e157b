// RUN: %moec-opt %s --moec-verify-plan --split-input-file --verify-diagnostics

#one = affine_map<()[s0] -> (s0)>
plan.program @overlap symbols ["n"] {
  plan.arena 0 scale #one bytes 128
  // expected-error @below {{shares bytes of arena 0 with a buffer that is alive at the same time}}
  %a = plan.buffer scale #one bytes 64 at <arena = 0, offset = 0, first = 0, last = 1>
  // expected-note @below {{the other buffer}}
  %b = plan.buffer scale #one bytes 64 at <arena = 0, offset = 0, first = 1, last = 2>
}

// -----

#one = affine_map<()[s0] -> (s0)>
plan.program @beyond symbols ["n"] {
  plan.arena 0 scale #one bytes 128
  // expected-error @below {{does not lie inside its arena of 128 bytes}}
  %a = plan.buffer scale #one bytes 128 at <arena = 0, offset = 64, first = 0, last = 1>
}

// -----

#one = affine_map<()[s0] -> (s0)>
plan.program @short_life symbols ["n"] {
  plan.arena 0 scale #one bytes 128
  // expected-error @below {{is used by command 1, outside of its lifetime [0, 0]}}
  %a = plan.buffer scale #one bytes 64 at <arena = 0, offset = 0, first = 0, last = 0>
  %b = plan.buffer scale #one bytes 64 at <arena = 0, offset = 64, first = 0, last = 1>
  plan.copy %b to %a bytes #one
  plan.copy %a to %b bytes #one
}

// -----

#one = affine_map<()[s0] -> (s0)>
plan.program @unplaced symbols ["n"] {
  // expected-error @below {{has no placement}}
  %a = plan.buffer scale #one bytes 64
}

// -----

#two = affine_map<()[s0, s1] -> (s0)>
plan.program @symbols symbols ["n"] {
  // expected-error @below {{expects 'scale' to be a map of no dimensions and 1 symbols}}
  %a = plan.buffer scale #two bytes 64
}
