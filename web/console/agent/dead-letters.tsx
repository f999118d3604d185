import type { ResultOf } from '#client/api.ts';
import { DangerousButton } from '../dangerous-button.tsx';
import { timeText } from '../texts.ts';
import { pageQuery, usePagedList } from '../use-paged-list.ts';
import { addressOf } from '../use-route.ts';
import { VirtualList } from '../virtual-list.tsx';
import type { WithClient } from './with-client.ts';

type Letter = ResultOf<'GET', '/dead_letters'>['items'][number];

const CONSEQUENCES: Readonly<Partial<Record<Letter['source'], string>>> = {
  delivery: 'The callback is posted to its receiver again, with all its tries. Receivers detect a repeat by its idempotency key.',
  event: 'The event is posted to its receiver again, once and outside the order of the others.',
  command: 'The command is sent to the owner of its session again, and has the effect that it did not have.',
};

/** What was given up, newest first. */
export function DeadLetters({ client }: WithClient) {
  const list = usePagedList<Letter>(keyOf, (cursor) => client.request('GET', '/dead_letters', { query: pageQuery(cursor) }));
  const replay = async (letter: Letter) => {
    await client.request('POST', '/dead_letters/{dead_letter_id}/replay', { path: { dead_letter_id: letter.id }, query: { source: letter.source } });
    list.remove(keyOf(letter));
  };
  return (
    <VirtualList
      label="Dead letters"
      list={list}
      keyOf={keyOf}
      empty="There are no dead letters."
      row={(letter) => (
        <div class="row">
          <span class="badge">{letter.source}</span>
          <span class="wide">{letter.reason}</span>
          {letter.session_id !== null && <a href={addressOf('sessions', letter.session_id)}>session</a>}
          <time dateTime={letter.created_at}>{timeText(letter.created_at)}</time>
          {letter.replayable && <DangerousButton label="Replay" consequence={CONSEQUENCES[letter.source] ?? ''} act={() => replay(letter)} />}
        </div>
      )}
    />
  );
}

function keyOf({ source, id }: Letter): string {
  return `${source} ${id}`;
}
