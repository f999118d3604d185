import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { SlotMap } from '#shared/slot-map.ts';
import { limits } from '../limits.ts';

/**
 * Lets answers hear that their connection closed while they waited behind an earlier one. Node tells only the answer whose turn it is:
 * polls and streams that were pipelined behind it would be held for nobody, a stream for ever. To be installed before any other hook, so
 * that the connection is still open.
 */
export function closeWaitingResponses(app: FastifyInstance): void {
  /** Answers that are not over, by connection: one listener serves them all. */
  const open = new WeakMap<Socket, SlotMap<ServerResponse>>();

  const follow = (socket: Socket): SlotMap<ServerResponse> => {
    const responses = new SlotMap<ServerResponse>();
    open.set(socket, responses);
    socket.once('close', () => {
      // Without a socket: its turn has not come, and never will. Node marks the one whose turn it is in the same way.
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
