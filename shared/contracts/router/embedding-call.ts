import { z } from 'zod';
import { embeddingLimits } from './embedding-request.ts';

/**
 * What a call for vectors has beside its request. The inputs are the request's messages, one each, so that sizes, prices, modalities and preferences are read as
 * those of a chat, and workers without this surface can read the call and leave it to others.
 */
export const embeddingCall = z.object({
  format: z.enum(['float', 'base64']),
  /** Null: as many as the model has. */
  dimensions: z.number().int().min(1).nullable(),
  /** Null: not stated. */
  inputType: z.string().nullable(),
  /** Of inputs that are token ids, in order; the request then has one message without text. Null: the inputs are the messages. */
  tokens: z
    .array(z.array(z.number().int().min(0)).min(1))
    .min(1)
    .max(embeddingLimits.inputs)
    .nullable(),
});
export type EmbeddingCall = z.infer<typeof embeddingCall>;
