import type { ComponentChildren } from 'preact';
import { Problem } from '../problem.tsx';
import { json, ms, timeText } from '../texts.ts';
import { useLoaded } from '../use-loaded.ts';
import { addressOf } from '../use-route.ts';
import { Waterfall } from './waterfall.tsx';
import type { WithClient } from './with-client.ts';

interface TurnViewProps extends WithClient {
  sessionId: string;
  /** A trace id, with `.` and the turn's first offset; without them: the first turn of the trace. */
  turn: string;
}

const REFRESH_MS = 2_000;

/** What a turn has decided and why, beside the waterfall of its model calls. */
export function TurnView({ client, sessionId, turn: name }: TurnViewProps) {
  const [traceId = '', beginOffset] = name.split('.');
  const query = beginOffset === undefined ? {} : { begin_offset: Number(beginOffset) };
  const load = () => client.request('GET', '/sessions/{session_id}/turns/{trace_id}', { path: { session_id: sessionId, trace_id: traceId }, query });
  const { value: turn, failure } = useLoaded(name, load, REFRESH_MS);
  if (turn === null) return failure === null ? <p class="faint">Loading…</p> : <Problem error={failure} />;
  return (
    <div class="turn">
      <h3>Turn at offset {turn.begin_offset}</h3>
      <p>
        <span class="badge">{turn.outcome}</span> {timeText(turn.created_at)} {turn.error} {turn.cut_short !== null && `cut short by its ${turn.cut_short}`} ·{' '}
        <a href={addressOf('traces', traceId)}>trace</a>
        {turn.reply !== null && ` · reply at offset ${turn.reply.offset} by ${turn.reply.model ?? 'an unknown model'}`}
      </p>
      <Waterfall turn={turn} />
      <Part
        title="Moderation"
        items={turn.moderation}
        row={({ offset, status, tags }) => <Reason name={`offset ${offset}`} mark={status} reason={tags.join(', ')} />}
      />
      <Part title="Policies" items={turn.policies} row={({ id, rationale }) => <Reason name={id} reason={rationale} />} />
      <Part
        title="Conditions"
        items={turn.evidence}
        row={({ id, applies, rationale, model, ms: duration }) => (
          <Reason name={id} mark={applies ? 'applies' : 'does not apply'} reason={rationale} by={`${model}, ${ms(duration)}`} />
        )}
      />
      <Part
        title="Relationships"
        items={turn.resolutions.filter(({ outcome }) => outcome !== 'none')}
        row={({ entity, outcome, counterparts }) => <Reason name={entity} mark={outcome} reason={counterparts.join(', ')} />}
      />
      <Part
        title="Steps of routines"
        items={turn.steps}
        row={({ routine_id, step_id }) => (
          <>
            <a href={addressOf('routines', routine_id, sessionId)}>{routine_id}</a> at <code>{step_id}</code>
          </>
        )}
      />
      <Part
        title="Questions about routines"
        items={turn.routines}
        row={({ routine_id, question, answer }) => <Reason name={routine_id} mark={question} reason={json(answer)} />}
      />
      <Part
        title="Whether tools run"
        items={turn.inferences}
        row={({ tool_id, outcome, rationale }) => <Reason name={tool_id} mark={outcome} reason={rationale} />}
      />
      <Part
        title="Tools"
        items={turn.tools}
        row={({ tool_id, failed, arguments: given, ms: duration }) => (
          <Reason name={tool_id} mark={failed ? 'failed' : 'done'} reason={json(given)} by={ms(duration)} />
        )}
      />
      <Part title="Tools that no server lists" items={turn.unlisted_tools} row={(id) => <Reason name={id} reason={null} />} />
      <Part
        title="Questions to the customer"
        items={turn.questions}
        row={({ tool_id, parameter, problem }) => <Reason name={tool_id} mark={parameter} reason={problem} />}
      />
      <Part title="Unreadable answers" items={turn.faults} row={({ kind, reason, model }) => <Reason name={kind} reason={reason} by={model} />} />
      {turn.retrieval !== null && (
        <p>
          Retrieval: {turn.retrieval.failure ?? `${turn.retrieval.documents} documents`}, {ms(turn.retrieval.ms)}
        </p>
      )}
      {turn.check !== null && (
        <Part
          title={`Check of the reply: ${turn.check.outcome}`}
          items={turn.check.policies}
          row={({ id, followed, rationale }) => <Reason name={id} mark={followed ? 'followed' : 'missed'} reason={rationale} />}
        />
      )}
    </div>
  );
}

function Part<Item>({ title, items, row }: { title: string; items: readonly Item[]; row(item: Item): ComponentChildren }) {
  if (items.length === 0) return null;
  return (
    <>
      <h4>{title}</h4>
      <ul class="plain">
        {items.map((item, index) => (
          <li key={index}>{row(item)}</li>
        ))}
      </ul>
    </>
  );
}

function Reason({ name, mark, reason, by }: { name: string; mark?: string; reason: string | null; by?: string }) {
  return (
    <>
      <code>{name}</code> {mark !== undefined && <span class="badge">{mark}</span>} {reason} {by !== undefined && <span class="faint">({by})</span>}
    </>
  );
}
