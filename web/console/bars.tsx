import { ms } from './texts.ts';

/** `beginMs`: epoch. */
interface Bar {
  id: string;
  name: string;
  note: string;
  beginMs: number;
  durationMs: number;
}

/** What took how long, each from its begin to its end. @param untilMs the end of the whole, if none of them is later */
export function Bars({ title, bars, fromMs, untilMs }: { title: string; bars: readonly Bar[]; fromMs: number; untilMs: number }) {
  const beginMs = Math.min(fromMs, ...bars.map((bar) => bar.beginMs));
  const wholeMs = Math.max(1, untilMs - beginMs, ...bars.map((bar) => bar.beginMs + bar.durationMs - beginMs));
  const percent = (part: number) => `${(100 * part) / wholeMs}%`;
  return (
    <>
      <p>
        {title} within {ms(wholeMs)}
      </p>
      <ol class="waterfall">
        {bars.map((bar) => (
          <li key={bar.id}>
            <span>
              {bar.name} <span class="faint">{bar.note}</span>
            </span>
            <span class="track" aria-hidden="true">
              <span style={{ left: percent(bar.beginMs - beginMs), width: percent(bar.durationMs) }} />
            </span>
          </li>
        ))}
      </ol>
    </>
  );
}
