import { createHash } from 'node:crypto';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Clock } from '#shared/clock.ts';
import { keyScopes } from '../plugins/key-scopes.ts';
import type { CodeRows } from './code-rows.ts';
import { createCodeRequest } from './code-schemas.ts';
import { issueCode } from './issue-code.ts';

/** POST /auth/keys/code, for management keys: approves a key, which is exchanged for the code with its verifier. */
export function createCode({ codeRows, clock }: { codeRows: CodeRows; clock: Clock }): FastifyPluginAsyncZod {
  return async (app) => {
    app.addHook('onRequest', keyScopes.managementOnly);

    app.post('/auth/keys/code', { schema: { body: createCodeRequest } }, async ({ body }) => {
      const nowMs = clock.nowMs();
      const code = await issueCode(codeRows, body, nowMs);
      const { origin } = new URL(body.callback_url);
      return { data: { id: code, app_id: appIdOf(origin), created_at: new Date(nowMs).toISOString() } };
    });
  };
}

/** A positive number of 31 bits, the same for all codes of an app. */
function appIdOf(origin: string): number {
  return createHash('sha256').update(origin).digest().readUInt32BE() >>> 1;
}
