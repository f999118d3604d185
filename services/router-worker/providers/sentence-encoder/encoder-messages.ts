/** To the thread: one at a time. */
export interface ToThread {
  text: string;
}

/** From the thread. Any error ends it in place of this. */
export interface EncodedText {
  vector: Float32Array;
  /** Of the model's vocabulary. */
  tokens: number;
}
