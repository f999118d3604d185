import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { SlotMap } from '#shared/slot-map.ts';
import { limits } from '../limits.ts';

/**
 * Emits `close` on all pipelined responses of a closed connection. Node does so only for the first: polls and streams behind it would leak, a stream for ever.
 * Install it before any other hook, while the connection is certainly open.
 */
export function closeWaitingResponses(app: FastifyInstance): void {
  const open = new WeakMap<Socket, SlotMap<ServerResponse>>();

  const follow = (socket: Socket): SlotMap<ServerResponse> => {
    const responses = new SlotMap<ServerResponse>();
    open.set(socket, responses);
    socket.once('close', () => {
      // No socket assigned: behind the first one, which Node marks the same way.
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
