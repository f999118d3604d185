import type { FastifyInstance } from 'fastify';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { type BrokenRequests, brokenRequestResponder, TUNNEL_REQUEST } from './broken-requests.ts';
import { type ErrorRules, preparedRefusal } from './error-replies.ts';

interface UnservableRules {
  errors: Pick<ErrorRules, 'replyTo'>;
  brokenRequests: BrokenRequests;
}

/**
 * Refuses in the server's own form what Node's server answers with an empty body or not at all: no `Host`, other expectations, and CONNECT. Requests are
 * refused before their key is checked, so what they name is not looked up: the refusal is the same for each address.
 */
export function refuseUnservable(app: FastifyInstance, { errors, brokenRequests }: UnservableRules): void {
  const respond = brokenRequestResponder(brokenRequests);
  const refusalFor = (why: string) => preparedRefusal(new SwitchyardError('request.invalid', why), errors.replyTo);
  const refusals = { host: refusalFor('a request of HTTP/1.1 must have a Host header'), expect: refusalFor('Expect can be 100-continue only') };
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  app.server.on('connect', (_request, socket) => {
    // Node has removed its own listener: without one a reset of the connection would end the process.
    socket.on('error', () => {});
    respond(Object.assign(new Error('a request to open a tunnel'), { code: TUNNEL_REQUEST }), socket);
  });
  app.addHook('onRequest', (request, reply, done) => {
    const header = unservableHeader(request.raw);
    if (header === null) return done();
    reply.header('connection', 'close');
    refusals[header](reply);
  });
}

interface RequestHead {
  headers: { host?: string | undefined; expect?: string | undefined };
  httpVersion: string;
}

function unservableHeader({ headers: { host, expect }, httpVersion }: RequestHead): 'host' | 'expect' | null {
  if (httpVersion !== '1.1') return null;
  if (host === undefined) return 'host';
  return expect === undefined || /^100-continue$/i.test(expect) ? null : 'expect';
}
