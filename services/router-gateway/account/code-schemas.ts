import { z } from 'zod';
import { MAX_LIMIT_USD } from '#shared/credit/nano-usd.ts';
import { changeKeyRequest, WORKSPACE } from './key-schemas.ts';
import { accountLimits } from './limits.ts';

const method = z.enum(['S256', 'plain']);
const challenge = z.string().min(1).max(accountLimits.challengeCharacters);
/** Those of base64 and of a plain verifier (RFC 7636). It is stored as it came, and PostgreSQL takes no NUL. */
const CHALLENGE = /^[\w.~+/=-]+$/;

const callback = z.string().max(accountLimits.callbackCharacters).refine(isCallback, 'must be an https URL, or http on localhost, without a password');
const keyFields = {
  code_challenge: challenge.regex(CHALLENGE, 'must be letters, digits, "-", ".", "_", "~", "+", "/" or "="').nullish(),
  code_challenge_method: method.nullish(),
  expires_at: changeKeyRequest.shape.expires_at,
  key_label: changeKeyRequest.shape.name,
  usage_limit_type: changeKeyRequest.shape.limit_reset,
};
type Refinement<Body> = [isMet: (body: Body) => boolean, { path: string[]; error: string }];

const hasChallenge: Refinement<{ code_challenge?: string | null | undefined; code_challenge_method?: string | null | undefined }> = [
  (body) => body.code_challenge_method == null || body.code_challenge != null,
  { path: ['code_challenge'], error: 'is missing, and code_challenge_method is given' },
];

/** POST /auth/keys/code */
export const createCodeRequest = z
  .strictObject({ ...keyFields, callback_url: callback, limit: changeKeyRequest.shape.limit, workspace_id: z.literal(WORKSPACE).optional() })
  .refine(...hasChallenge);
export type CreateCodeRequest = z.infer<typeof createCodeRequest>;

const ofPage = z.object({
  ...keyFields,
  callback_url: callback.optional(),
  limit: z
    .string()
    .regex(/^\d{1,7}(\.\d{1,9})?$/, 'must be US dollars as a decimal like 5.00')
    .transform(Number)
    .refine((usd) => usd <= MAX_LIMIT_USD, `must be at most ${MAX_LIMIT_USD}`)
    .optional(),
});
const isBound: Refinement<{ callback_url?: string | undefined; code_challenge?: string | null | undefined }> = [
  (query) => query.callback_url !== undefined || query.code_challenge != null,
  { path: ['code_challenge'], error: 'is missing; without a callback_url it is needed' },
];

/** GET /auth. Other parameters are left unread. */
export const approvalQuery = ofPage.refine(...hasChallenge).refine(...isBound);
/** POST /auth, with the key as it was typed. */
export const approvalForm = ofPage
  .extend({ management_key: z.string().max(accountLimits.challengeCharacters) })
  .refine(...hasChallenge)
  .refine(...isBound);

/** POST /auth/keys. Other fields are left unread: OAuth clients send more. */
export const exchangeCodeRequest = z.object({
  code: z.string().min(1).max(accountLimits.challengeCharacters),
  code_verifier: challenge.nullish(),
  code_challenge_method: method.nullish(),
});

/** Plain HTTP is safe only where nothing leaves the machine. */
const LOCAL: ReadonlySet<string> = new Set(['localhost', '127.0.0.1']);

/** Other characters, such as `;`, would end the host in a header. */
const HOST = /^[a-z0-9._-]+$/;

function isCallback(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  return HOST.test(hostname) && username === '' && password === '' && (protocol === 'https:' || (protocol === 'http:' && LOCAL.has(hostname)));
}
