import type { FastifyReply, onRequestHookHandler } from 'fastify';
import type { Living } from '#shared/config/living.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { preparedRefusal } from '#shared/http-server/error-replies.ts';
import { IGNORED_HEADER } from '../ignored-fields.ts';
import { errorReply } from './error-reply.ts';

const METHODS = 'GET, HEAD, POST, PATCH, DELETE';
/** Scripts of a page see no others. */
const EXPOSED = [
  'x-generation-id',
  'x-request-id',
  'retry-after',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-should-retry',
  IGNORED_HEADER,
].join(', ');
/** The longest that browsers keep a reply to a preflight is between 10 minutes and a day. */
const PREFLIGHT_SECONDS = 600;

const refuse = preparedRefusal(
  new SwitchyardError('request.invalid', "The router's configuration does not list this origin in cors.origins", { details: { param: 'origin' } }),
  errorReply,
);

/**
 * Admits requests of pages of the listed origins and of the gateway's own host, and refuses those of others with 400, as the contract says. Requests without
 * `Origin`, as programs send them, cost one look-up.
 */
export function crossOrigin(setup: Living<{ origins: ReadonlySet<string> }>): onRequestHookHandler {
  return ({ method, headers }, reply, done) => {
    const { origin } = headers;
    if (origin === undefined) return done();
    // On the bare response: a stream writes its head past the framework.
    reply.raw.setHeader('vary', 'Origin');
    if (!setup.current().origins.has(origin)) {
      // A proxy may have ended TLS, so the scheme that the page has is not known here.
      if (headers.host !== undefined && (origin === `https://${headers.host}` || origin === `http://${headers.host}`)) return done();
      return refuse(reply);
    }
    reply.raw.setHeader('access-control-allow-origin', origin);
    if (method === 'OPTIONS' && headers['access-control-request-method'] !== undefined) {
      return sendPreflight(reply, headers['access-control-request-headers']);
    }
    reply.raw.setHeader('access-control-expose-headers', EXPOSED);
    done();
  };
}

/** @param asked sent back: a wildcard does not cover `Authorization`, and clients send headers of their own. Which headers have an effect is not decided here */
function sendPreflight(reply: FastifyReply, asked: string | undefined): void {
  reply.raw.setHeader('vary', 'Origin, Access-Control-Request-Headers');
  reply.header('access-control-allow-methods', METHODS).header('access-control-max-age', PREFLIGHT_SECONDS);
  if (asked !== undefined) reply.header('access-control-allow-headers', asked);
  reply.code(204).send();
}
