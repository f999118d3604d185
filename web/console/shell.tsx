import type { ComponentChildren } from 'preact';
import { addressOf } from './use-route.ts';

interface ShellProps {
  title: string;
  /** The first part of each section's address, and its name. */
  sections: readonly (readonly [string, string])[];
  current: string;
  /** At the end of the bar. */
  action: ComponentChildren;
  children: ComponentChildren;
}

/** The bar with the sections, and one of them. */
export function Shell({ title, sections, current, action, children }: ShellProps) {
  return (
    <div class="console">
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="bar">
        <h1>{title}</h1>
        <nav aria-label="Sections">
          {sections.map(([part, name]) => (
            <a key={part} href={addressOf(part)} aria-current={part === current ? 'page' : undefined}>
              {name}
            </a>
          ))}
        </nav>
        {action}
      </header>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}
