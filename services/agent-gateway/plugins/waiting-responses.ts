import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { Slab } from '#shared/slot-map.ts';
import { limits } from '../limits.ts';

/**
 * Lets answers hear that their connection closed while they waited behind an earlier one. Node tells only the answer whose turn it is:
 * polls and streams that were pipelined behind it would be held for nobody, a stream for ever. To be installed before any other hook, so
 * that the connection is still open.
 */
export function closeWaitingAnswers(app: FastifyInstance): void {
  /** Answers that are not over, by connection: one listener serves them all. */
  const open = new WeakMap<Socket, Slab<ServerResponse>>();

  const follow = (socket: Socket): Slab<ServerResponse> => {
    const answers = new Slab<ServerResponse>();
    open.set(socket, answers);
    socket.once('close', () => {
      // Without a socket: its turn has not come, and never will. Node marks the one whose turn it is in the same way.
      for (const answer of answers.values()) {
        if (answer.socket !== null) continue;
        answer.destroyed = true;
        answer.emit('close');
      }
    });
    return answers;
  };

  app.addHook('onRequest', ({ raw: { socket } }, { raw: answer }, done) => {
    const answers = open.get(socket) ?? follow(socket);
    if (answers.size >= limits.requestsPerConnection) return done(new SwitchyardError('service.overloaded', 'too many requests are open on this connection'));
    const place = answers.add(answer);
    answer.once('close', () => answers.remove(place));
    done();
  });
}
