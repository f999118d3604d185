import type { FastifyInstance } from 'fastify';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { type BrokenRequests, brokenRequestResponder } from './broken-requests.ts';

/** Refuses in the server's own form what Node's server answers with an empty body or not at all: no `Host`, other expectations, and CONNECT. */
export function refuseUnservable(app: FastifyInstance, brokenRequests: BrokenRequests): void {
  const respond = brokenRequestResponder(brokenRequests);
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  app.server.on('connect', (_request, socket) => respond(new Error('a request to open a tunnel'), socket));
  app.addHook('onRequest', (request, reply, done) => {
    const why = whyUnservable(request.raw);
    if (why === null) return done();
    reply.header('connection', 'close');
    done(new SwitchyardError('request.invalid', why));
  });
}

interface RequestHead {
  headers: { host?: string | undefined; expect?: string | undefined };
  httpVersion: string;
}

function whyUnservable({ headers: { host, expect }, httpVersion }: RequestHead): string | null {
  if (httpVersion !== '1.1') return null;
  if (host === undefined) return 'a request of HTTP/1.1 must have a Host header';
  return expect === undefined || /^100-continue$/i.test(expect) ? null : 'Expect can be 100-continue only';
}
