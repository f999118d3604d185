import { z } from 'zod';
import { MAX_LIMIT_USD } from '#shared/credit/nano-usd.ts';
import { accountLimits } from './limits.ts';

/** Line breaks and controls could inject a header of a mail or a line of a log; direction marks hide what is written. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u;
/** There is one. */
export const WORKSPACE = 'default';

const isPrintable = (text: string) => !UNPRINTABLE.test(text);
const printable = (characters: number) => z.string().max(characters).refine(isPrintable, 'must not contain control characters or line breaks');
const rate = z.number().int().min(1).max(accountLimits.rate).nullable();

const changeable = {
  name: printable(accountLimits.nameCharacters).min(1),
  disabled: z.boolean(),
  /** USD; 0: nothing may be spent. */
  limit: z.number().min(0).max(MAX_LIMIT_USD).nullable(),
  limit_reset: z.enum(['daily', 'weekly', 'monthly']).nullable(),
  include_byok_in_limit: z.boolean(),
  expires_at: z.iso.datetime({ offset: true, error: 'must be a time like 2026-01-31T12:00:00Z' }).nullable(),
  owner_email: z.email().max(accountLimits.emailCharacters).nullable(),
  requests_per_minute: rate,
  tokens_per_minute: rate,
  calls_at_once: rate,
};

/** PATCH /keys/{hash}: fields that are absent keep their value. */
export const changeKeyRequest = z.strictObject(changeable).partial();
export type ChangeKeyRequest = z.infer<typeof changeKeyRequest>;

/** POST /keys */
export const createKeyRequest = changeKeyRequest.extend({
  name: changeable.name,
  creator_user_id: printable(accountLimits.nameCharacters).nullish(),
  workspace_id: z.literal(WORKSPACE).optional(),
});

/** POST /keys/{hash}/exposed */
export const exposedKeyRequest = z.strictObject({
  /** For people. */
  where: printable(accountLimits.whereCharacters).min(1),
  disable: z.boolean().default(true),
});

/** GET /keys */
export const listKeysQuery = z.object({
  include_disabled: z.stringbool({ error: 'must be true or false' }).default(false),
  offset: z.coerce.number().int().min(0).max(accountLimits.offset).default(0),
  workspace_id: z.literal(WORKSPACE).optional(),
});
