import { z } from 'zod';
import { changeKeyRequest, WORKSPACE } from './key-schemas.ts';
import { accountLimits } from './limits.ts';

const method = z.enum(['S256', 'plain']);
const challenge = z.string().min(1).max(accountLimits.challengeCharacters);

/** POST /auth/keys/code */
export const createCodeRequest = z
  .strictObject({
    callback_url: z.string().max(accountLimits.callbackCharacters).refine(isCallback, 'must be an https URL, or http on localhost, without a password'),
    code_challenge: challenge.nullish(),
    code_challenge_method: method.nullish(),
    limit: changeKeyRequest.shape.limit,
    expires_at: changeKeyRequest.shape.expires_at,
    key_label: changeKeyRequest.shape.name,
    usage_limit_type: changeKeyRequest.shape.limit_reset,
    workspace_id: z.literal(WORKSPACE).optional(),
  })
  .refine((body) => body.code_challenge_method == null || body.code_challenge != null, {
    path: ['code_challenge'],
    error: 'is missing, and code_challenge_method is given',
  });

/** POST /auth/keys. Other fields are left unread: OAuth clients send more. */
export const exchangeCodeRequest = z.object({
  code: z.string().min(1).max(accountLimits.challengeCharacters),
  code_verifier: challenge.nullish(),
  code_challenge_method: method.nullish(),
});

/** Plain HTTP is safe only where nothing leaves the machine. */
const LOCAL: ReadonlySet<string> = new Set(['localhost', '127.0.0.1']);

function isCallback(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  return username === '' && password === '' && (protocol === 'https:' || (protocol === 'http:' && LOCAL.has(hostname)));
}
