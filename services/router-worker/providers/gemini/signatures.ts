import { z } from 'zod';
import { GEMINI_FORMAT } from './to-parts.ts';

/** Accepted in place of a signature that was lost (Google's documentation of thought signatures). */
export const LOST_SIGNATURE = 'skip_thought_signature_validator';

const encrypted = z.object({ type: z.literal('reasoning.encrypted'), data: z.string().min(1), id: z.string().nullish(), format: z.literal(GEMINI_FORMAT) });

export interface Signatures {
  /** By tool call. */
  ofCalls: ReadonlyMap<string, string>;
  /** Of the text; null: none. */
  ofText: string | null;
}

/** The signatures that a client sent back, of this vendor alone. */
export function signaturesIn(details: unknown): Signatures {
  const ofCalls = new Map<string, string>();
  let ofText: string | null = null;
  for (const given of Array.isArray(details) ? details : []) {
    const detail = encrypted.safeParse(given).data;
    if (detail === undefined) continue;
    if (detail.id) ofCalls.set(detail.id, detail.data);
    else ofText = detail.data;
  }
  return { ofCalls, ofText };
}

/** A detail as a client that retains reasoning sends it back. */
export function signatureDetail(callId: string, signature: string): z.infer<typeof encrypted> {
  return { type: 'reasoning.encrypted', data: signature, id: callId, format: GEMINI_FORMAT };
}
