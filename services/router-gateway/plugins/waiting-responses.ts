import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/**
 * Emits `close` on pipelined responses when their connection closes before their turn. Node does so only on the current response, and
 * the other calls would run without a reader. Install it before any other hook, while the connection is certainly open.
 */
export function closeWaitingResponses(app: FastifyInstance): void {
  /** One listener per connection. */
  const waiting = new WeakMap<Socket, Set<ServerResponse>>();

  const follow = (socket: Socket): Set<ServerResponse> => {
    const responses = new Set<ServerResponse>();
    waiting.set(socket, responses);
    socket.once('close', () => {
      // Never became the current response.
      for (const response of responses) if (response.socket === null) response.emit('close');
    });
    return responses;
  };

  app.addHook('onRequest', ({ raw: { socket } }, { raw: response }, done) => {
    // With a socket it is the current response.
    if (response.socket === null) {
      const responses = waiting.get(socket) ?? follow(socket);
      responses.add(response);
      response.once('close', () => responses.delete(response));
    }
    done();
  });
}
