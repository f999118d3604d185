import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyPluginAsync, FastifyReply } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { publicStyles, styledForm } from '#shared/http-server/built-pages.ts';
import { escaped } from '#shared/http-server/plain-page.ts';
import { readFormBodies } from '#shared/http-server/read-form-bodies.ts';
import { addressTries } from '#shared/rates/address-tries.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { limits, type Waits } from '../limits.ts';
import { type AgentKey, refuseOtherOrigins } from '../plugins/agent-auth.ts';
import { countedBody } from '../plugins/bounded-bodies.ts';
import { replyTo } from '../plugins/error-reply.ts';
import { clearedCookie, loginCookie } from '../plugins/login-cookie.ts';

interface LoginDeps {
  key: AgentKey;
  cache: Cache;
  clock: Clock;
  waits: Pick<Waits, 'loginMs'>;
}

const FORM = 'application/x-www-form-urlencoded';

/** A path of this server: browsers read `//host` and `/\host` as another one, and pass over tabs and line breaks. */
const nextPath = z
  .string()
  .max(limits.nextCharacters)
  .regex(/^\/(?!\/)[\x21-\x5b\x5d-\x7e]*$/, 'must be a path of this server, such as /chat')
  .default('/chat');

const query = z.object({ next: nextPath });
const body = z.object({ key: z.string().min(1).max(limits.keyCharacters), next: nextPath });

/** The page behind the login, and what it looks like. */
const PAGE = 'chat.html';

/** GET of the files of the form's look. */
export function loginStyles(): FastifyPluginAsync {
  return publicStyles(PAGE);
}

/** GET, POST /auth/login: sets the cookie with the agent's key. POST /auth/logout: clears it. No key is needed; a form gets pages and redirects, JSON bare statuses. */
export function login({ key, cache, clock, waits }: LoginDeps): FastifyPluginAsync {
  const countTry = addressTries({ prefix: 'login', perMinute: limits.loginsPerMinute, cache, clock });
  const config = { isPublic: true };
  const sendPage = styledForm(PAGE);
  const sendForm = (reply: FastifyReply, next: string, problem: string | null) => sendPage(reply, { title: 'Log in', body: formOf(next, problem) });
  return async (scope) => {
    readFormBodies(scope, { limitBytes: limits.loginBytes, ...countedBody });
    scope.addHook('onRequest', async (request, reply) => {
      reply.header('cache-control', 'no-store');
      refuseOtherOrigins(request);
    });
    const app = scope.withTypeProvider<ZodTypeProvider>();

    app.get('/auth/login', { config, schema: { querystring: query } }, async (request, reply) => sendForm(reply, request.query.next, null));

    app.post('/auth/login', { config, schema: { body } }, async (request, reply) => {
      const { key: typed, next } = request.body;
      const isForm = request.headers['content-type']?.startsWith(FORM) === true;
      const refused = await countTry(request.ip).then(
        () => null,
        (error: unknown) => error,
      );
      if (refused !== null) {
        if (!isForm || !(refused instanceof SwitchyardError)) throw refused;
        const { status, headers } = replyTo(refused);
        return sendForm(reply.code(status).headers(headers), next, `Too many tries: wait ${headers['retry-after']} s.`);
      }
      // As long for a wrong key as for the right one.
      await delay(waits.loginMs);
      const given = typed.trim();
      if (!key.is(Buffer.from(given, 'utf8'))) {
        if (isForm) return sendForm(reply.code(401).header('www-authenticate', 'Bearer'), next, 'This is not the key of this agent.');
        throw new SwitchyardError('request.unauthorized', 'this is not the key of this agent');
      }
      reply.header('set-cookie', loginCookie(given, request.headers.host));
      return isForm ? reply.redirect(next, 303) : reply.code(204).send();
    });

    app.post('/auth/logout', { config }, async (request, reply) => {
      reply.header('set-cookie', clearedCookie(request.headers.host));
      const isForm = request.headers['content-type']?.startsWith(FORM) === true;
      return isForm ? reply.redirect('/auth/login', 303) : reply.code(204).send();
    });
  };
}

function formOf(next: string, problem: string | null): string {
  const alert = problem === null ? '' : `<p role="alert">${escaped(problem)}</p>\n`;
  return `${alert}<form method="post" action="/auth/login">
<input type="hidden" name="next" value="${escaped(next)}">
<label for="key">Key of the agent</label>
<input id="key" type="password" name="key" autocomplete="current-password" maxlength="${limits.keyCharacters}" required>
<button type="submit">Log in</button>
</form>`;
}
