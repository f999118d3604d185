import type { FastifyPluginAsync } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { Clock } from '#shared/clock.ts';
import { plainPageHeaders } from '#shared/http-server/plain-page.ts';
import { readFormBodies } from '#shared/http-server/read-form-bodies.ts';
import { hashOfSecret, type KeyDirectory, refusalOf } from '#shared/keys/caller-key.ts';
import { addressTries } from '#shared/rates/address-tries.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { countedByAdmission } from '../admission.ts';
import { approvalPage, codePage } from './approval-page.ts';
import type { CodeRows } from './code-rows.ts';
import { approvalForm, approvalQuery } from './code-schemas.ts';
import { issueCode } from './issue-code.ts';
import { accountLimits } from './limits.ts';

export interface ApproveKeyDeps {
  keys: KeyDirectory;
  codeRows: CodeRows;
  cache: Cache | null;
  clock: Clock;
}

/** GET, POST /auth: a page on which a management key approves a key for an app. The key is in the form, and no cookie is set: other pages cannot submit it. */
export function approveKey({ keys, codeRows, cache, clock }: ApproveKeyDeps): FastifyPluginAsync {
  const countTry = addressTries({ prefix: 'oauth:approval', perMinute: accountLimits.triesPerMinute, cache, clock });
  const isManagementKey = async (secret: string) => {
    const key = await keys.find(hashOfSecret(secret));
    return key?.isManagement === true && refusalOf(key, clock.nowMs()) === null;
  };
  return async (scope) => {
    const app = scope.withTypeProvider<ZodTypeProvider>();
    readFormBodies(scope, { limitBytes: accountLimits.bodyBytes, ...countedByAdmission });

    app.get('/auth', { schema: { querystring: approvalQuery } }, async ({ query }, reply) => {
      return reply.headers(headersFor(query.callback_url)).send(approvalPage(query, null));
    });

    app.post('/auth', { schema: { body: approvalForm } }, async ({ body, ip }, reply) => {
      const { management_key: secret, ...approval } = body;
      await countTry(ip);
      reply.headers(headersFor(approval.callback_url));
      if (!(await isManagementKey(secret))) return reply.code(403).send(approvalPage(approval, 'This is not a valid management key.'));
      const code = await issueCode(codeRows, approval, clock.nowMs());
      if (approval.callback_url === undefined) return reply.send(codePage(code));
      return reply.redirect(withCode(approval.callback_url, code), 303);
    });
  };
}

function headersFor(callback: string | undefined): Record<string, string> {
  return plainPageHeaders(callback === undefined ? null : new URL(callback).origin);
}

/** The query is kept as it was written. */
function withCode(callback: string, code: string): string {
  const url = new URL(callback);
  url.search = url.search === '' ? `?code=${code}` : `${url.search}&code=${code}`;
  return url.href;
}
