import { createHash, randomBytes } from 'node:crypto';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Clock } from '#shared/clock.ts';
import { nanoOfUsd } from '#shared/credit/nano-usd.ts';
import { hashOfSecret } from '#shared/keys/caller-key.ts';
import { keyScopes } from '../plugins/key-scopes.ts';
import type { CodeRows } from './code-rows.ts';
import { createCodeRequest } from './code-schemas.ts';
import { futureTime } from './keys.ts';
import { accountLimits } from './limits.ts';

const CODE_BYTES = 32;

/** POST /auth/keys/code, for management keys: approves a key, which is exchanged for the code with its verifier. */
export function createCode({ codeRows, clock }: { codeRows: CodeRows; clock: Clock }): FastifyPluginAsyncZod {
  return async (app) => {
    app.addHook('onRequest', keyScopes.managementOnly);

    app.post('/auth/keys/code', { schema: { body: createCodeRequest } }, async ({ body }) => {
      const nowMs = clock.nowMs();
      const code = `auth_code_${randomBytes(CODE_BYTES).toString('hex')}`;
      const { origin } = new URL(body.callback_url);
      const row = {
        hash: hashOfSecret(code),
        challenge: body.code_challenge ?? null,
        // The default of RFC 7636.
        challengeMethod: body.code_challenge == null ? null : (body.code_challenge_method ?? 'plain'),
        name: body.key_label ?? `OAuth: ${new URL(origin).host}`.slice(0, accountLimits.nameCharacters),
        limitNano: body.limit == null ? null : nanoOfUsd(body.limit),
        limitReset: body.usage_limit_type ?? null,
        keyExpiresAt: body.expires_at == null ? null : futureTime(body.expires_at, nowMs),
        expiresAt: new Date(nowMs + accountLimits.codeMs),
      };
      await codeRows.insert(row, new Date(nowMs - accountLimits.expiredCodeMs));
      return { data: { id: code, app_id: appIdOf(origin), created_at: new Date(nowMs).toISOString() } };
    });
  };
}

/** A positive number of 31 bits, the same for all codes of an app. */
function appIdOf(origin: string): number {
  return createHash('sha256').update(origin).digest().readUInt32BE() >>> 1;
}
