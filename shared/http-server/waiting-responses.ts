import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { SlotMap } from '../slot-map.ts';

/**
 * Emits `close` on all pipelined responses of a closed connection. Node does so only for the first: what runs for those behind it would not end.
 * Install it before any other hook, while the connection is certainly open.
 * @param mostPerConnection incomplete requests; null: any number
 */
export function closeWaitingResponses(app: FastifyInstance, mostPerConnection: number | null): void {
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
    // With a socket it is the current response, which needs following for its number only.
    if (mostPerConnection === null && response.socket !== null) return done();
    const responses = open.get(socket) ?? follow(socket);
    if (mostPerConnection !== null && responses.size >= mostPerConnection) return done(tooMany());
    const slot = responses.add(response);
    response.once('close', () => responses.remove(slot));
    done();
  });
}

function tooMany(): SwitchyardError {
  return new SwitchyardError('service.overloaded', 'too many requests are open on this connection');
}
