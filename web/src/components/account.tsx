/** Who is signed in, the theme, and the way out. */
import type { JSX } from 'preact';

import { asApiError } from '../api';
import { signOut, type Session } from '../session';
import { chooseTheme, useThemeChoice, type Choice } from '../theme';
import { Icon, type IconName } from './icon';
import { toast } from './toast';

const NEXT: Record<Choice, Choice> = { system: 'light', light: 'dark', dark: 'system' };
const SIGNS: Record<Choice, IconName> = { system: 'screen', light: 'sun', dark: 'moon' };
const WORDS: Record<Choice, string> = {
  system: 'Colours: as the system',
  light: 'Colours: light',
  dark: 'Colours: dark',
};

export function ThemeButton(): JSX.Element {
  const choice = useThemeChoice();
  const next = NEXT[choice];
  return (
    <button
      type="button"
      class="bar-button"
      title={`${WORDS[choice]}. Next: ${next}`}
      aria-label={`${WORDS[choice]}. Change to ${next}`}
      onClick={() => chooseTheme(next)}
    >
      <Icon name={SIGNS[choice]} />
    </button>
  );
}

async function leave(): Promise<void> {
  try {
    await signOut();
  } catch (error) {
    toast(`You are still signed in. ${asApiError(error).message}`, 'bad');
  }
}

export function Account({ session }: { session: Session }): JSX.Element {
  const who = session.name || (session.scope === 'operator' ? 'Operator' : 'Key');
  return (
    <>
      <span class="bar-who" title={`Signed in with a key of scope ${session.scope}; may ${session.may.join(', ')}`}>
        {who}
      </span>
      <ThemeButton />
      <button
        type="button"
        class="bar-button"
        title="Sign out"
        aria-label="Sign out"
        onClick={() => void leave()}
      >
        <Icon name="leave" />
      </button>
    </>
  );
}
