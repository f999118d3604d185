import { randomBytes } from 'node:crypto';
import { nanoOfUsd } from '#shared/credit/nano-usd.ts';
import { hashOfSecret } from '#shared/keys/caller-key.ts';
import type { CodeRows } from './code-rows.ts';
import type { CreateCodeRequest } from './code-schemas.ts';
import { futureTime } from './keys.ts';
import { accountLimits } from './limits.ts';

const CODE_BYTES = 32;

/** An approved key; without `callback_url` its code is shown. */
export type Approval = Omit<CreateCodeRequest, 'callback_url'> & { callback_url?: string | undefined };

/** @returns the code, which is stored as its hash @throws `request.invalid` for an expiry that has passed */
export async function issueCode(codeRows: CodeRows, approval: Approval, nowMs: number): Promise<string> {
  const code = `auth_code_${randomBytes(CODE_BYTES).toString('hex')}`;
  const { callback_url: callback, code_challenge: challenge, limit, expires_at: expiresAt } = approval;
  const app = callback === undefined ? 'without a callback' : new URL(callback).host;
  const row = {
    hash: hashOfSecret(code),
    challenge: challenge ?? null,
    // The default of RFC 7636.
    challengeMethod: challenge == null ? null : (approval.code_challenge_method ?? 'plain'),
    name: approval.key_label ?? `OAuth: ${app}`.slice(0, accountLimits.nameCharacters),
    limitNano: limit == null ? null : nanoOfUsd(limit),
    limitReset: approval.usage_limit_type ?? null,
    keyExpiresAt: expiresAt == null ? null : futureTime(expiresAt, nowMs),
    expiresAt: new Date(nowMs + accountLimits.codeMs),
  };
  await codeRows.insert(row, new Date(nowMs - accountLimits.expiredCodeMs));
  return code;
}
