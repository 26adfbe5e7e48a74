/** What pages are made of. */
export { Button, ButtonLink, type ButtonProps } from './button';
export { Chart, type ChartMark, type ChartProps, type Columns, type Series, Sparkline, type Unit } from './chart';
export { Copy } from './copy';
export { Confirm, Dialog, DialogFoot, type DialogProps } from './dialog';
export { Check, type Choice, Field, Form, Search, Select, TextArea, TextInput } from './form';
export { Icon, type IconName } from './icon';
export { Card, Facts, Grid, Page, Row } from './page';
export { Badge, Code, Duration, Json, Meter, Stat, Tag, Time, type Tone, withCode } from './small';
export { Empty, Loading, Loads, LoadsIfThere, Problem } from './states';
export { type Column, Table, type TableProps } from './table';
export { type Tab, Tabs } from './tabs';
export { toast, Toasts } from './toast';
