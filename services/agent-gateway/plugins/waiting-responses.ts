import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { SlotMap } from '#shared/slot-map.ts';
import { limits } from '../limits.ts';

/**
 * Emits `close` on pipelined responses when their connection closes. Node does so only for the response at the head of the pipeline: polls and streams behind
 * it would leak, a stream for ever. Install it before any other hook, while the connection is certain to be open.
 */
export function closeWaitingResponses(app: FastifyInstance): void {
  /** Incomplete responses by connection, with one listener each. */
  const open = new WeakMap<Socket, SlotMap<ServerResponse>>();

  const follow = (socket: Socket): SlotMap<ServerResponse> => {
    const responses = new SlotMap<ServerResponse>();
    open.set(socket, responses);
    socket.once('close', () => {
      // No socket assigned: not at the head of the pipeline. Node marks the response at the head the same way.
      for (const response of responses.values()) {
        if (response.socket !== null) continue;
        response.destroyed = true;
        response.emit('close');
      }
    });
    return responses;
  };

  app.addHook('onRequest', ({ raw: { socket } }, { raw: response }, done) => {
    const responses = open.get(socket) ?? follow(socket);
    if (responses.size >= limits.requestsPerConnection) return done(new SwitchyardError('service.overloaded', 'too many requests are open on this connection'));
    const slot = responses.add(response);
    response.once('close', () => responses.remove(slot));
    done();
  });
}
