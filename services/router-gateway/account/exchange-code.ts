import type { FastifyPluginAsync } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ulid } from '#shared/ids.ts';
import { hashOfSecret } from '#shared/keys/caller-key.ts';
import { addressTries } from '#shared/rates/address-tries.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { isVerifierOf } from './code-challenge.ts';
import type { CodeRows } from './code-rows.ts';
import { exchangeCodeRequest } from './code-schemas.ts';
import type { KeyRows } from './key-rows.ts';
import { newKeyDefaults } from './keys.ts';
import { accountLimits } from './limits.ts';
import { newSecret } from './new-secret.ts';

export interface ExchangeCodeDeps {
  codeRows: CodeRows;
  keyRows: KeyRows;
  /** Null, or not reachable: each gateway counts by itself. */
  cache: Cache | null;
  clock: Clock;
}

/** POST /auth/keys, without a key: makes the key that was approved, once for each code. */
export function exchangeCode({ codeRows, keyRows, cache, clock }: ExchangeCodeDeps): FastifyPluginAsync {
  const countTry = addressTries({ prefix: 'oauth:code', perMinute: accountLimits.triesPerMinute, cache, clock });
  return async (app) => {
    app.withTypeProvider<ZodTypeProvider>().post('/auth/keys', { schema: { body: exchangeCodeRequest } }, async ({ body, ip }) => {
      await countTry(ip);
      const nowMs = clock.nowMs();
      const hash = hashOfSecret(body.code);
      const row = await codeRows.find(hash);
      if (row === null) throw forbidden('The code or its code_verifier is not valid');
      const { challenge, challengeMethod } = row;
      const method = body.code_challenge_method ?? challengeMethod;
      if (method !== challengeMethod) throw otherMethod();
      if (row.expiresAt.getTime() <= nowMs) throw forbidden('The code has expired: authorize again');
      const isVerified = challenge === null || method === null || (body.code_verifier != null && isVerifierOf({ method, text: challenge }, body.code_verifier));
      // A wrong verifier ends the code, too: another program than the one that requested it has it.
      const isTaken = await codeRows.take(hash);
      if (!isTaken || !isVerified) throw forbidden('The code or its code_verifier is not valid');
      const { secret, hash: keyHash, label } = newSecret();
      const { name, limitNano, limitReset, keyExpiresAt: expiresAt } = row;
      const identity = { id: `key_${ulid(nowMs).toLowerCase()}`, hash: keyHash, label, creatorUserId: null };
      // After the code is taken: a gateway that dies here leaves no key, and the user approves again.
      await keyRows.insert({ ...newKeyDefaults, ...identity, name, limitNano, limitReset, expiresAt }, 'oauth');
      return { key: secret, user_id: null };
    });
  };
}

function otherMethod(): SwitchyardError {
  const param = 'code_challenge_method';
  return new SwitchyardError('request.invalid', `${param} differs from that with which the code was requested`, { details: { param } });
}

function forbidden(message: string): SwitchyardError {
  return new SwitchyardError('request.forbidden', message);
}
