import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/**
 * Lets answers hear that their connection closed while they waited behind an earlier one. Node tells only the answer whose turn it is:
 * calls that were pipelined behind it would be held, and run upstream, for nobody. To be installed before any other hook, so that the
 * connection is still open.
 */
export function closeWaitingResponses(app: FastifyInstance): void {
  /** Answers that began as waiting and are not over, by connection: one listener serves them all. */
  const waiting = new WeakMap<Socket, Set<ServerResponse>>();

  const follow = (socket: Socket): Set<ServerResponse> => {
    const responses = new Set<ServerResponse>();
    waiting.set(socket, responses);
    socket.once('close', () => {
      // Without a socket: its turn has not come, and never will.
      for (const response of responses) if (response.socket === null) response.emit('close');
    });
    return responses;
  };

  app.addHook('onRequest', ({ raw: { socket } }, { raw: response }, done) => {
    // With a socket it is this answer's turn, as it nearly always is.
    if (response.socket === null) {
      const responses = waiting.get(socket) ?? follow(socket);
      responses.add(response);
      response.once('close', () => responses.delete(response));
    }
    done();
  });
}
