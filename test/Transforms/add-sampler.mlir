// RUN: moec-opt %s --split-input-file --moec-add-sampler | FileCheck %s

// CHECK: module attributes {moe.language_model = {sampler = "sample", vocabulary = 2048 : i64}}
module attributes {moe.language_model = {vocabulary = 2048 : i64}} {
  // CHECK: func.func @step
  func.func @step(%logits: tensor<?x2048xf32>) -> tensor<?x2048xf32> attributes {moe.entry} {
    return %logits : tensor<?x2048xf32>
  }
  // CHECK: func.func @sample(%[[LOGITS:.*]]: tensor<?x2048xf32> {moe.dims = ["rows"], moe.name = "logits"}
  // CHECK-SAME: tensor<?xi32> {moe.dims = ["samples"], moe.name = "rows"}
  // CHECK-SAME: tensor<?xf32> {moe.dims = ["samples"], moe.name = "temperature"}
  // CHECK-SAME: tensor<?xi32> {moe.dims = ["samples"], moe.name = "top_k"}
  // CHECK-SAME: tensor<?xf64> {moe.dims = ["samples"], moe.name = "top_p"}
  // CHECK-SAME: tensor<?xf64> {moe.dims = ["samples"], moe.name = "random"}
  // CHECK-SAME: -> (tensor<?xi32> {moe.name = "tokens"}) attributes {moe.entry}
  // CHECK: moe.sample %[[LOGITS]]
}

// -----

// The name is taken.
// CHECK: sampler = "sample_1"
module attributes {moe.language_model = {vocabulary = 8 : i64}} {
  func.func @sample(%logits: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {moe.entry} {
    return %logits : tensor<?x8xf32>
  }
  // CHECK: func.func @sample_1
}

// -----

// One is there already.
// CHECK: sampler = "mine"
// CHECK-NOT: moe.sample
module attributes {moe.language_model = {sampler = "mine", vocabulary = 8 : i64}} {
  func.func @mine(%logits: tensor<?x8xf32>) attributes {moe.entry} {
    return
  }
}

// -----

// No language model.
// CHECK-NOT: moe.sample
module {
  func.func @main(%x: tensor<?x8xf32>) attributes {moe.entry} {
    return
  }
}
