/** How a server of this API is asked for vectors. */
export interface VectorForm {
  /** Most inputs of one request. */
  maxInputs: number;
  /** Whether it knows `encoding_format: "base64"`, which is a quarter of the numbers as text. */
  givesBase64: boolean;
  dimensionsField: 'dimensions' | 'output_dimension';
  takesTokens: boolean;
  /** Whether it has, or ignores, `input_type`. */
  takesInputType: boolean;
}

/** Of servers of which nothing is known: the smallest list that they are likely to take. */
export const anyVectors: VectorForm = { maxInputs: 256, givesBase64: false, dimensionsField: 'dimensions', takesTokens: true, takesInputType: true };
